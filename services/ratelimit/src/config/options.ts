import type { UnaryListenOptions } from '@tollgate/kit/grpc/unary-server';
import type { TracingOptions } from '@tollgate/kit/telemetry';
import { hostAndPort } from '@tollgate/kit/text';
import type { TlsFiles } from '@tollgate/kit/tls';
import type { DeciderOptions } from '../ratelimit/service.ts';
import type { FileRuleSourceOptions } from '../rules/file-source.ts';
import type { XdsRuleSourceOptions } from '../rules/xds/xds-source.ts';
import type { StatsSinkOptions } from '../stats/sinks.ts';
import { defaultMaxMessageBytes } from './rules.ts';
import type { Settings } from './settings.ts';
import { parseListenAddress } from './stats.ts';

/** What the exchange with the store is called in traces; the first two are the original's names. */
const countSpanNames = {
  redis: 'Redis Pipeline Execution',
  memcache: 'Memcached Fetch Execution',
  memory: 'Memory Counter Execution',
} as const;

/** Of the memory there is nothing to say. @see https://opentelemetry.io/docs/specs/semconv/db/redis/ */
const countSpanAttributes = {
  redis: { 'db.system.name': 'redis', 'db.operation.name': 'PIPELINE' },
  memcache: { 'db.system.name': 'memcached', 'db.operation.name': 'incr' },
  memory: {},
} as const;

/** The part of the settings that decisions depend on. */
export function deciderOptions(s: Settings): DeciderOptions {
  return {
    cacheKeyPrefix: s.cacheKeyPrefix,
    nearLimitRatio: s.nearLimitRatio,
    expirationJitterMaxSeconds: s.expirationJitterMaxSeconds,
    shadowMode: s.shadowMode,
    quotaMode: s.quotaMode,
    headerNames: s.responseHeadersEnabled
      ? { limit: s.limitHeader, remaining: s.remainingHeader, reset: s.resetHeader }
      : undefined,
    responseDynamicMetadata: s.responseDynamicMetadata,
    countSpanName: countSpanNames[s.backendType],
    countSpanAttributes: countSpanAttributes[s.backendType],
  };
}

/** The part of the settings that says where rule files are. */
export function fileRuleSourceOptions(s: Settings): FileRuleSourceOptions {
  return {
    root: s.runtimeRoot,
    subdirectory: s.runtimeSubdirectory,
    appDirectory: s.runtimeAppdirectory,
    ignoreDotFiles: s.runtimeIgnoreDotFiles,
    watchRoot: s.runtimeWatchRoot,
    mergeDomains: s.mergeDomainConfig,
  };
}

/** The part of the settings that says which management server rules come from. */
export function xdsRuleSourceOptions(s: Settings): XdsRuleSourceOptions {
  return {
    node: { id: s.xdsNodeId, metadata: s.xdsNodeMetadata },
    stream: {
      // As Go has it, no host is this machine.
      serverUrl: s.xdsServerUrl.startsWith(':') ? `localhost${s.xdsServerUrl}` : s.xdsServerUrl,
      headers: s.xdsAdditionalHeaders,
      maxMessageBytes: s.xdsMaxMessageBytes || defaultMaxMessageBytes,
    },
    tls: s.xdsServerUseTls
      ? {
          certFile: s.xdsClientTlsCert,
          keyFile: s.xdsClientTlsKey,
          caFile: s.xdsServerTlsCacert,
          serverName: s.xdsServerTlsSan,
        }
      : undefined,
    pauses: {
      connectRetryMs: s.xdsConnectRetryIntervalMs,
      initialMs: s.xdsBackoffInitialIntervalMs,
      maxMs: s.xdsBackoffMaxIntervalMs,
      spread: s.xdsBackoffJitter ? s.xdsBackoffRandomFactor : 0,
    },
    mergeDomains: s.mergeDomainConfig,
  };
}

/** The part of the settings that says where statistics go. */
export function statsSinkOptions(s: Settings): StatsSinkOptions {
  const address = parseListenAddress(s.pullMetricsAddr);
  if (address === undefined) {
    throw new TypeError('PULLMETRICS_ADDR was checked with the settings');
  }
  return {
    extraTags: s.extraTags,
    statsd: { protocol: s.statsdProtocol, host: s.statsdHost, port: s.statsdPort },
    pull: {
      address,
      path: s.pullMetricsPath,
      responseTimeAsMilliseconds: s.pullMetricsResponseTimeAsMilliseconds,
    },
  };
}

/** The part of the settings that says what is traced. */
export function tracingOptions(s: Settings): TracingOptions {
  return {
    enabled: s.tracingEnabled,
    protocol: s.tracingExporterProtocol,
    serviceName: s.tracingServiceName,
    serviceNamespace: s.tracingServiceNamespace,
    serviceInstanceId: s.tracingServiceInstanceId,
    samplingRate: s.tracingSamplingRate,
  };
}

/** The part of the settings that says where gRPC is served. */
export function grpcServerOptions(s: Settings): UnaryListenOptions {
  return {
    address: s.grpcUds === '' ? hostAndPort(s.grpcHost, s.grpcPort) : `unix:${s.grpcUds}`,
    addressSetting: 'GRPC_UDS',
    maxConnectionAgeMs: s.grpcMaxConnectionAgeMs,
    maxConnectionAgeGraceMs: s.grpcMaxConnectionAgeGraceMs,
    maxConnections: s.grpcMaxConnections,
  };
}

/** The part of the settings that says with which certificates gRPC is served. */
export function serverTlsFiles(s: Settings): TlsFiles {
  return { certFile: s.grpcServerTlsCert, keyFile: s.grpcServerTlsKey, caFile: s.grpcClientTlsCacert };
}
