#!/usr/bin/env bash
# What is installed under PREFIX asks nothing of its users that is only ours: no flags, no paths of this build, and no gRPC or
# protobuf in headers.
set -euo pipefail

prefix=${1:?usage: check_installed.sh PREFIX}
status=0
refuse() {
  local pattern=$1 why=$2
  shift 2
  if grep -rnE -e "$pattern" "$@"; then
    echo "installed files hold $why" >&2
    status=1
  fi
}

refuse '-fsanitize|-Wall|-Wextra|-Werror|triad_build_flags' 'flags of this build' "$prefix" --include='*.cmake' --include='*.pc'
refuse 'triad_proto|/proto/|/client/(include|src)' 'paths or targets of this build' "$prefix" --include='*.cmake' --include='*.pc'
refuse '#include.*(grpc|google/|\.pb\.h|core/|server/|client/src)' 'foreign includes' "$prefix/include"
for header in client connection tensor attend forward layers stream options retry server_info allocator version; do
  if [[ ! -f $prefix/include/triad/$header.h ]]; then
    echo "missing: include/triad/$header.h" >&2
    status=1
  fi
done
exit "$status"
