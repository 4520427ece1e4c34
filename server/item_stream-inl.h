// The bodies of ItemStream. Included by item_stream.h only.
#pragma once

#include "server/item_stream.h"

namespace triad {

template <class Request, class Reply>
void ItemStream<Request, Reply>::Take(std::unique_ptr<Request> frame) {
  const Time received = context_.clock.Now();
  if (absl::Status status = CheckNothingUnknown(*frame); !status.ok()) {
    return Refuse(std::move(frame), received, std::move(status));
  }
  const uint64_t id = frame->request_id();
  if (frame->has_cancel()) return CancelItem(id);
  if (!frame->has_request()) {
    return Refuse(std::move(frame), received,
                  absl::InvalidArgumentError("item must hold a request or a cancel; was unset"));
  }
  absl::StatusOr<Time> deadline = ItemDeadline(frame->has_timeout() ? &frame->timeout() : nullptr, deadline_, received);
  if (!deadline.ok()) return Refuse(std::move(frame), received, deadline.status());
  Item* item = nullptr;
  {
    MutexLock lock(mu_);
    std::unique_ptr<Item>& place = in_flight_[id];
    if (place == nullptr) {
      place = std::make_unique<Item>();
      item = place.get();
      ++state_.unanswered;
    }
  }
  if (item == nullptr) {
    return Refuse(std::move(frame), received,
                  absl::InvalidArgumentError(
                      absl::StrCat("request_id must be unique among the items in flight; ", id, " is in flight")));
  }
  item->frame = std::move(frame);
  item->reply = std::make_unique<Reply>();
  item->received = received;
  item->deadline = *deadline;
  Submit(*item, id);
}

// Nobody else touches the item before its task is accepted; afterwards it may be gone.
template <class Request, class Reply>
void ItemStream<Request, Reply>::Submit(Item& item, uint64_t id) {
  if (absl::Status status = CheckOpen(context_); !status.ok()) return OnItemDone(id, std::move(status));
  absl::StatusOr<std::unique_ptr<Task>> task =
      make_({.request = item.frame->request(),
             .response = *item.reply->mutable_response(),
             .received = item.received,
             .deadline = item.deadline,
             .done =
                 [self = this->shared_from_this(), id](absl::Status status, const ComputedRequest& effort) {
                   if (status.ok()) self->context_.metrics.OnComputed(effort);
                   self->OnItemDone(id, std::move(status));
                 }},
            context_);
  if (!task.ok()) return OnItemDone(id, task.status());
  absl::StatusOr<TaskId> task_id = AdmitTask(*std::move(task), peer_, context_, item.hold);
  if (!task_id.ok()) return OnItemDone(id, task_id.status());
  bool is_broken = false;
  {
    MutexLock lock(mu_);
    // Frames are taken one at a time, so an item found under this id is this one.
    if (const auto found = in_flight_.find(id); found != in_flight_.end()) found->second->task = *task_id;
    is_broken = state_.is_broken;
  }
  if (is_broken) context_.scheduler.Cancel(*task_id);  // Break came too early to know it
}

template <class Request, class Reply>
void ItemStream<Request, Reply>::CancelItem(uint64_t id) {
  TaskId task = 0;
  {
    MutexLock lock(mu_);
    if (const auto found = in_flight_.find(id); found != in_flight_.end()) task = found->second->task;
  }
  context_.scheduler.Cancel(task);
}

template <class Request, class Reply>
void ItemStream<Request, Reply>::OnItemDone(uint64_t id, absl::Status status) {
  std::unique_ptr<Item> item;
  {
    MutexLock lock(mu_);
    const auto found = in_flight_.find(id);
    item = std::move(found->second);
    in_flight_.erase(found);
  }
  Answer(std::move(item), std::move(status));
}

template <class Request, class Reply>
void ItemStream<Request, Reply>::Refuse(std::unique_ptr<Request> frame, Time received, absl::Status status) {
  auto item = std::make_unique<Item>();
  item->frame = std::move(frame);
  item->reply = std::make_unique<Reply>();
  item->received = received;
  {
    MutexLock lock(mu_);
    ++state_.unanswered;
  }
  Answer(std::move(item), std::move(status));
}

template <class Request, class Reply>
void ItemStream<Request, Reply>::Answer(std::unique_ptr<Item> item, absl::Status status) {
  item->answered = context_.clock.Now();
  status = WithDeadline(std::move(status), item->deadline, item->answered);
  item->reply->set_request_id(item->frame->request_id());
  if (!status.ok()) {
    *item->reply->mutable_error() = ToStreamError(status, [this] { return context_.scheduler.retry_after(); });
  }
  context_.metrics.OnAnswered({.method = method_,
                               .code = status.code(),
                               .total = item->answered - item->received,
                               .request_bytes = static_cast<int64_t>(item->frame->ByteSizeLong()),
                               .reply_bytes = static_cast<int64_t>(item->reply->ByteSizeLong())});
  item->frame.reset();
  std::unique_ptr<Item> dropped;
  {
    MutexLock lock(mu_);
    if (state_.is_broken) {
      dropped = std::move(item);
      --state_.unanswered;
    } else {
      ready_.push_back(std::move(item));
      ++state_.ready;
    }
  }
  dropped.reset();  // gives its hold back before Pump may end the stream
  Pump();
}

template <class Request, class Reply>
void ItemStream<Request, Reply>::Break() {
  std::deque<std::unique_ptr<Item>> dropped;
  std::vector<TaskId> tasks;
  {
    MutexLock lock(mu_);
    state_.is_broken = true;
    dropped.swap(ready_);
    state_.ready = 0;
    state_.unanswered -= static_cast<int64_t>(dropped.size());
    for (const auto& [id, item] : in_flight_) tasks.push_back(item->task);
  }
  for (TaskId task : tasks) context_.scheduler.Cancel(task);
}

template <class Request, class Reply>
void ItemStream<Request, Reply>::Pump() {
  const std::shared_ptr<ItemStream> alive = this->shared_from_this();  // OnDone may run as soon as Finish is called
  for (bool is_first = true;; is_first = false) {
    StreamAction action;
    Request* read = nullptr;
    const Reply* write = nullptr;
    absl::Status final_status;
    {
      MutexLock lock(mu_);
      if (is_first && is_pumping_) return;  // whoever pumps looks again before it stops
      action = NextAction(state_, context_.max_stream_items);
      is_pumping_ = action != StreamAction::kNone;
      if (action == StreamAction::kRead) {
        incoming_ = std::make_unique<Request>();
        MarkUntouched(*incoming_);
        read = incoming_.get();
        state_.is_reading = true;
      } else if (action == StreamAction::kWrite) {
        outgoing_ = std::move(ready_.front());
        ready_.pop_front();
        --state_.ready;
        write = outgoing_->reply.get();
        state_.is_writing = true;
      } else if (action == StreamAction::kFinish) {
        state_.is_finished = true;
        final_status = FinalStatus(state_);
      }
    }
    switch (action) {
      case StreamAction::kNone:
        return;
      case StreamAction::kRead:
        this->StartRead(read);
        break;
      case StreamAction::kWrite:
        this->StartWrite(write);
        break;
      case StreamAction::kFinish:
        this->Finish(ToGrpc(final_status));
        break;
    }
  }
}

}  // namespace triad
