import { AdsClient, type AdsClientContext, type AdsClientOptions } from '@tollgate/ads-client/client';
import { type ResourceSet, stateOfTheWorld } from '@tollgate/ads-client/state-of-the-world';
import type { CompileOptions } from '@tollgate/rules/compile';
import { limiterClassKey } from '@tollgate/rules/resource-shape';
import { defaultMaxMessageBytes, xdsSettings } from '../../config/rules.ts';
import type { Settings } from '../../config/settings.ts';
import { describeNotAtomic } from '../../config/stores.ts';
import type { Context } from '../../context.ts';
import { statsNames } from '../../metrics/names.ts';
import { createTlsStats } from '../../metrics/server-stats.ts';
import type { RuleLoad, RuleSource, RuleSourceStart } from '../rule-store.ts';
import { RuleSubscriber } from './subscriber.ts';

export interface XdsSourceOptions {
  readonly client: AdsClientOptions<ResourceSet>;
  readonly compile: CompileOptions;
}

export type XdsSourceContext = Pick<Context, 'random' | 'stats' | 'logger'> &
  Pick<AdsClientContext, 'sleep' | 'waitLogMs'>;

/** CONFIG_TYPE=GRPC_XDS_SOTW. */
export function createXdsSource(settings: Settings, context: Context): XdsSource {
  return new XdsSource(
    {
      client: {
        protocol: stateOfTheWorld,
        node: {
          id: settings.xdsNodeId,
          userAgentName: 'tollgate-ratelimit',
          metadata: {
            ...settings.xdsNodeMetadata,
            ...(settings.xdsLimiterClass !== '' && { [limiterClassKey]: settings.xdsLimiterClass }),
          },
        },
        stream: {
          // As in Go, `:18000` is this machine.
          serverUrl: settings.xdsServerUrl.startsWith(':')
            ? `localhost${settings.xdsServerUrl}`
            : settings.xdsServerUrl,
          headers: settings.xdsAdditionalHeaders,
          maxMessageBytes: settings.xdsMaxMessageBytes || defaultMaxMessageBytes,
        },
        tls: settings.xdsServerUseTls
          ? {
              certFile: settings.xdsClientTlsCert,
              keyFile: settings.xdsClientTlsKey,
              caFile: settings.xdsServerTlsCacert,
              serverName: settings.xdsServerTlsSan,
            }
          : undefined,
        backoff: {
          connectRetryMs: settings.xdsConnectRetryIntervalMs,
          initialMs: settings.xdsBackoffInitialIntervalMs,
          maxMs: settings.xdsBackoffMaxIntervalMs,
          jitter: settings.xdsBackoffJitter ? settings.xdsBackoffRandomFactor : 0,
        },
        reportIntervalMs: settings.xdsMatchReportIntervalMs,
        maxMessageSetting: xdsSettings.xdsMaxMessageBytes.env,
      },
      compile: {
        mergeDomains: settings.mergeDomainConfig,
        forMemcached: settings.backendType === 'memcache',
        notAtomic: describeNotAtomic(settings),
        calendarMonths: settings.useCalendarMonths,
      },
    },
    context,
  );
}

/** Receives rules from a management server. The active rules stay while it is unreachable. */
export class XdsSource implements RuleSource {
  readonly #options: XdsSourceOptions;
  readonly #context: XdsSourceContext;
  readonly #client: AdsClient<ResourceSet>;

  constructor(options: XdsSourceOptions, context: XdsSourceContext) {
    const { stats } = context;
    const connected = stats.gauge(statsNames.xdsConnected);
    this.#options = options;
    this.#context = context;
    this.#client = new AdsClient(options.client, {
      ...context,
      onConnected: (isConnected) => {
        connected.value = isConnected ? 1 : 0;
      },
      onCertificate: (validity) => createTlsStats(stats).setValidity('xds_client', validity),
    });
  }

  start(onLoad: (load: RuleLoad) => void, { signal, onCandidates }: RuleSourceStart = {}): Promise<void> {
    const { client, compile } = this.#options;
    const { stats, logger } = this.#context;
    const server = client.stream.serverUrl;
    const subscriber = new RuleSubscriber({ ...compile, server, onLoad, onCandidates, stats, logger });
    return this.#client.start(subscriber, { signal });
  }

  close(): Promise<void> {
    return this.#client.close();
  }
}
