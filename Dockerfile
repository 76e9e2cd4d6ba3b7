# syntax=docker/dockerfile:1
# The image of one service: make images, or docker build --build-arg SERVICE=auth .

# auth, console, ratelimit or xds
ARG SERVICE
# Builds, and runs the stage "development".
ARG NODE_IMAGE=node:24.21.0-trixie-slim@sha256:173f125896c3b47ddf056734c7ea789d04595a6a08769a8f78e0df642781fb66
# Runs: Node without a shell.
ARG BASE_IMAGE=gcr.io/distroless/nodejs24-debian13:nonroot@sha256:9eeb7f5887d0e239e78264b06f7f11d2e14be534050481803a9e4728fcdd278e

# Only what npm reads, so that packages are installed again only after a dependency has changed.
FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS manifests
WORKDIR /app
COPY . .
RUN find . -type f ! -name package.json ! -name package-lock.json ! -path './hack/images/*' -delete && \
    find . -type d -empty -delete

# Native parts are chosen for the target platform, so nothing is emulated.
FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS packages
ARG SERVICE
ARG TARGETPLATFORM
WORKDIR /app
COPY --from=manifests /app .
ENV npm_config_cache=/var/cache/npm
RUN --mount=type=cache,target=/var/cache/npm,sharing=locked \
    node hack/images/image-files.ts packages . "${SERVICE}" "${TARGETPLATFORM}" && rm -rf hack

FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS code
WORKDIR /checkout
COPY . .
COPY --from=packages /app/node_modules/@tollgate /links
# A checkout may be readable for one user only; the service runs as another.
RUN node hack/images/image-files.ts code /links /code && chmod -R u=rwX,go=rX /code && \
    cp -a /code /stripped && node hack/images/image-files.ts strip /stripped

# For skaffold dev: restarts when a file changes, and its user may change files.
FROM ${NODE_IMAGE} AS development
ARG SERVICE
WORKDIR /app
COPY --from=packages --chown=65532:65532 /app .
COPY --from=code --chown=65532:65532 /code .
RUN ln -s "services/${SERVICE}/src/main.ts" main.ts && \
    ln -s /app/cli/src/main.ts /usr/local/bin/tollgate && \
    if [ "${SERVICE}" = auth ]; then ln -s /app/main.ts /usr/local/bin/tollgate-auth; fi
USER 65532:65532
ENTRYPOINT ["node"]
CMD ["--watch", "main.ts"]

# Arguments of node, which is the entry point. Another command replaces the file name and everything after it.
FROM ${BASE_IMAGE} AS auth
LABEL org.opencontainers.image.description="User authentication, and external authorization for Envoy"
# kubectl exec deploy/… -- tollgate-auth users list
COPY --chmod=755 services/auth/bin/ /bin/
EXPOSE 8081 9001 9003 9100
CMD ["services/auth/src/main.ts"]

FROM ${BASE_IMAGE} AS console
LABEL org.opencontainers.image.description="Web console over the admin APIs of auth, ratelimit and xds"
EXPOSE 8070 8071
CMD ["services/console/src/main.ts"]

FROM ${BASE_IMAGE} AS ratelimit
LABEL org.opencontainers.image.description="Rate limit service for Envoy"
ENV NODE_OPTIONS=--max-semi-space-size=8
# /bin/ratelimit, /bin/config_check and /bin/client, as in the image of envoyproxy/ratelimit: Envoy Gateway runs the first.
COPY --chmod=755 services/ratelimit/bin/ /bin/
EXPOSE 8080 8081 6070 9090
CMD ["services/ratelimit/src/main.ts"]

FROM ${BASE_IMAGE} AS xds
LABEL org.opencontainers.image.description="Management server: serves RateLimitConfig objects to rate limit services over ADS"
EXPOSE 18000 8090
CMD ["services/xds/src/main.ts"]

# hadolint ignore=DL3006
FROM ${SERVICE}
ARG SERVICE
ARG BASE_IMAGE
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Tollgate ${SERVICE}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="${BASE_IMAGE}"
# kubectl exec deploy/… -- tollgate status
COPY --chmod=755 cli/bin/ /bin/
WORKDIR /app
COPY --from=packages /app .
COPY --from=code /stripped .
ENV NODE_ENV=production
# A number, so that Kubernetes can tell that it is not root.
USER 65532:65532
