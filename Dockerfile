# The server and the command-line tool on Debian 13.
#
#   docker build -t triad .
#   docker run --rm -p 8470:8470 -p 8471:8471 triad
#
# The context is this folder. deploy/README.md has ports, limits and sizes.

FROM debian:trixie-slim AS build
WORKDIR /triad
# On its own, so that an edit to the sources does not install the packages again.
COPY scripts/setup scripts/setup
RUN scripts/setup build
COPY . .
RUN cmake --preset release -DTRIAD_BUILD_TESTS=OFF \
 && cmake --build --preset release --target triad-server triad \
 && strip build/release/server/triad-server build/release/client/tools/triad

FROM debian:trixie-slim
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="triad" \
      org.opencontainers.image.description="Multi-head attention over gRPC, on CPUs" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0"
# What the two binaries are linked to, and no more.
RUN apt-get update \
 && apt-get install -y --no-install-recommends \
      libgrpc++1.51t64 libprotobuf32t64 libdnnl3.6 libhwy1t64 libprometheus-cpp-core1.0 libcivetweb1 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin triad
COPY --from=build /triad/build/release/server/triad-server /triad/build/release/client/tools/triad /usr/local/bin/
COPY LICENSE /usr/share/doc/triad/

USER triad
# Loopback, the default of the server, is of no use inside a container.
ENV TRIAD_LISTEN=0.0.0.0:8470 \
    TRIAD_HTTP_LISTEN=0.0.0.0:8471
EXPOSE 8470 8471
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["triad", "health", "--target=127.0.0.1:8470"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["triad-server"]
