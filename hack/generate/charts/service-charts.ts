import type { SettingsSpec } from '@tollgate/kit/settings';
import { settingsSpec as authSettings } from '../../../services/auth/src/config/settings.ts';
import { settingsSpec as ratelimitSettings } from '../../../services/ratelimit/src/config/settings.ts';
import { settingsSpec as xdsSettings } from '../../../services/xds/src/config/settings.ts';

/** What the values of a service's chart are made from. */
export interface ServiceChart {
  /** Its folder in `charts/`. */
  readonly name: string;
  readonly settings: SettingsSpec;
  /** Settings that are not values of `settings`, by variable: the value that decides them, or who sets them. */
  readonly decidedBy: Readonly<Record<string, string>>;
  /** Settings that are values of `settings` and of `secretSettings`: addresses that may hold a password. */
  readonly sometimesSecret: readonly string[];
  /** Settings whose default in a cluster is not that of the service. */
  readonly settingDefaults: Readonly<Record<string, string | number | boolean>>;
  /** Defaults of its own for values of charts/common/shared-values.yaml. */
  readonly sharedDefaults: Readonly<Record<string, string>>;
}

const downwardApi = 'Kubernetes';

/** The charts that run a service of ours. */
export const serviceCharts: readonly ServiceChart[] = [
  {
    name: 'ratelimit',
    settings: ratelimitSettings,
    decidedBy: {
      PORT: 'ports.http',
      GRPC_PORT: 'ports.grpc',
      DEBUG_PORT: 'ports.debug',
      PULLMETRICS_ADDR: 'ports.metrics',
      CONFIG_TYPE: 'rules.source',
    },
    sometimesSecret: ['KVSTORE_URL', 'KVSTORE_PERSECOND_URL'],
    settingDefaults: {
      LOG_LEVEL: 'info',
      LOG_FORMAT: 'json',
      KVSTORE_SOCKET_TYPE: 'tcp',
      KVSTORE_PERSECOND_SOCKET_TYPE: 'tcp',
      HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: true,
      USE_PUSHSTATS: false,
      USE_PULLMETRICS: true,
    },
    // Two of three collections of short-lived objects less than with V8's own size, for 8 MB of memory.
    sharedDefaults: { nodeOptions: '--max-semi-space-size=8' },
  },
  {
    name: 'xds',
    settings: xdsSettings,
    decidedBy: {
      XDS_GRPC_PORT: 'ports.grpc',
      XDS_ADMIN_PORT: 'ports.admin',
      XDS_NAMESPACES: 'watchNamespaces',
      XDS_GRPC_OWN_CA: 'tls.mode',
      XDS_GRPC_PLAINTEXT: 'tls.mode',
      XDS_GRPC_CERTIFICATE_SECRET: 'tls.mode',
      XDS_GRPC_SERVER_NAMES: 'tls.mode',
      XDS_GRPC_CLIENT_SECRETS: 'tls.limiterNamespaces',
      KUBERNETES_SERVICE_HOST: downwardApi,
      POD_NAMESPACE: downwardApi,
      POD_NAME: downwardApi,
    },
    sometimesSecret: [],
    settingDefaults: { LOG_FORMAT: 'json' },
    sharedDefaults: {},
  },
  {
    name: 'auth',
    settings: authSettings,
    decidedBy: {
      PORT: 'ports.http',
      SVC_EXT_AUTHZ_GRPC_PORT: 'ports.grpc',
      SVC_EXT_AUTHZ_HTTP_PORT: 'ports.http-authz',
      OTEL_EXPORTER_PULL_PORT: 'ports.metrics',
    },
    sometimesSecret: [],
    settingDefaults: {
      SVC_DB_DRIVER: 'postgres',
      SVC_METRICS_ENABLED: true,
      SVC_METRICS_EXPORTER: 'pull',
    },
    sharedDefaults: {},
  },
];
