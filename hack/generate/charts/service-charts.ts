import type { Setting, SettingSchema, SettingsSpec } from '@tollgate/kit/settings';
import { settingsSpec as authSettings } from '../../../services/auth/src/config/settings.ts';
import { settingsSpec as consoleSettings } from '../../../services/console/src/config/settings.ts';
import { settingsSpec as ratelimitSettings } from '../../../services/ratelimit/src/config/settings.ts';
import { settingsSpec as xdsSettings } from '../../../services/xds/src/config/settings.ts';
import type { JsonSchema } from './chart-values.ts';

/** Sources of the values of a service's chart. */
export interface ServiceChart {
  readonly name: string;
  readonly settings: SettingsSpec;
  /**
   * Settings that are not values of `settings`, by variable: the value that decides them, or who
   * sets them.
   */
  readonly decidedBy: Readonly<Record<string, string>>;
  /**
   * Settings that are values of `settings` and of `secretSettings`: addresses that may hold a
   * password.
   */
  readonly sometimesSecret: readonly string[];
  /** Settings whose default in a cluster is not that of the service. */
  readonly settingDefaults: Readonly<Record<string, string | number | boolean>>;
  /** Defaults of its own for values of charts/common/shared-values.yaml, by their keys. */
  readonly sharedDefaults: Readonly<Record<string, string | number | boolean>>;
  /** Values at the top level of charts/common/shared-values.yaml that the chart does not have. */
  readonly withoutShared?: readonly string[];
}

const downwardApi = 'Kubernetes';

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
      ADMIN_PORT: 'ports.https-admin',
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
    // Two of three collections of short-lived objects less than with V8's own size, for 8 MB of
    // memory.
    sharedDefaults: { nodeOptions: '--max-semi-space-size=8' },
  },
  {
    name: 'xds',
    settings: xdsSettings,
    decidedBy: {
      XDS_GRPC_PORT: 'ports.grpc',
      XDS_ADMIN_PORT: 'ports.admin',
      XDS_NAMESPACES: 'watchNamespaces',
      XDS_ANY_DOMAIN_NAMESPACES: 'global.anyDomainNamespaces',
      XDS_GRPC_OWN_CA: 'tls.mode',
      XDS_GRPC_PLAINTEXT: 'tls.mode',
      XDS_GRPC_CERTIFICATE_SECRET: 'tls.mode',
      XDS_GRPC_SERVER_NAMES: 'tls.mode',
      XDS_GRPC_CLIENT_SECRETS: 'tls.limiterNamespaces',
      XDS_ADMISSION_ENABLED: 'admissionWebhook.enabled',
      XDS_ADMISSION_PORT: 'ports.https-admission',
      XDS_ADMISSION_CONFIGURATION: 'admissionWebhook.enabled',
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
      KUBERNETES_SERVICE_HOST: downwardApi,
      KUBERNETES_SERVICE_PORT: downwardApi,
    },
    sometimesSecret: [],
    settingDefaults: {
      SVC_SECURITY_PROFILE: 'strict',
      SVC_DB_DRIVER: 'postgres',
      SVC_METRICS_ENABLED: true,
      SVC_METRICS_EXPORTER: 'pull',
    },
    sharedDefaults: {},
  },
  {
    name: 'console',
    settings: consoleSettings,
    decidedBy: { CONSOLE_PORT: 'ports.http', CONSOLE_ADMIN_PORT: 'ports.admin' },
    sometimesSecret: [],
    settingDefaults: { LOG_FORMAT: 'json' },
    // A replica has sessions of its own. It calls only the other parts of a release.
    sharedDefaults: { replicas: 1, restrictEgress: true },
    withoutShared: ['certManager', 'dashboard'],
  },
];

/** Everything from this line on is generated. */
const mark = '# --- Below this line: make generate. ---';

const lineWidth = 100;

/**
 * The values.yaml of the chart of a service: what it has there by hand, then the values that all
 * services have, then one for each setting.
 */
export function renderServiceValues(chart: ServiceChart, current: string, shared: string): string {
  const [own = ''] = current.split(mark);
  return [
    own.trimEnd(),
    '',
    mark,
    '',
    '# Shared by the charts of all services, from charts/common/shared-values.yaml.',
    '',
    adaptShared(shared, chart).trimEnd(),
    '',
    settingsBlock(chart),
    secretSettingsBlock(chart),
  ].join('\n');
}

/** The shared values as a chart has them: with its own defaults, and without what it has not. */
function adaptShared(shared: string, { sharedDefaults, withoutShared = [] }: ServiceChart): string {
  const replace = (text: string, pattern: RegExp, replacement: string): string => {
    if (!pattern.test(text)) throw new Error(`shared-values.yaml has no match of ${pattern}`);
    return text.replace(pattern, (_whole, kept: string) => kept + replacement);
  };
  const kept = withoutShared.reduce(
    (text, key) => replace(text, new RegExp(`()(?:^#.*\\n)*^${key}:.*\\n(?:^ .*\\n)*`, 'm'), ''),
    shared,
  );
  return Object.entries(sharedDefaults).reduce(
    (text, [key, value]) => replace(text, new RegExp(`^( *${key}: ).*$`, 'm'), JSON.stringify(value)),
    kept.replaceAll(/\n{3,}/g, '\n\n'),
  );
}

/** Settings that are values under their own names: neither secret nor set by another value. */
function settingsBlock(chart: ServiceChart): string {
  const settings = ordinarySettings(chart);
  const groups = Map.groupBy(settings, ({ group }) => group);
  return [
    '# Settings, named like their environment variables. Null leaves the default to the service, or to',
    '# the chart where it derives the setting from another value.',
    'settings:',
    ...[...groups].flatMap(([group, members]) => [
      '',
      `  # ${group}`,
      '',
      ...members.flatMap((setting) => [
        ...comment(settingDoc(setting)),
        `  ${setting.env}:${getDefault(chart, setting)}`,
      ]),
    ]),
    '',
  ].join('\n');
}

function secretSettingsBlock(chart: ServiceChart): string {
  const settings = secretSettings(chart);
  return [
    '# Secret settings, each from a key of a Secret: `{name: …, key: …}`. Null: from `existingSecret`.',
    settings.length === 0 ? 'secretSettings: {}' : 'secretSettings:',
    ...settings.flatMap((setting) => [...comment(settingDoc(setting)), `  ${setting.env}:`]),
    '',
  ].join('\n');
}

const ordinarySettings = ({ settings, decidedBy }: ServiceChart) =>
  Object.values(settings).filter(({ env, secret }) => !secret && decidedBy[env] === undefined);
const secretSettings = ({ settings, sometimesSecret }: ServiceChart) =>
  Object.values(settings).filter(({ env, secret }) => secret || sometimesSecret.includes(env));

/**
 * The schemas of the two blocks. They are taken from the settings, because their values are mostly
 * null.
 */
export function settingsSchemas(chart: ServiceChart): Readonly<Record<string, JsonSchema>> {
  const closed = (properties: JsonSchema): JsonSchema => ({
    type: 'object',
    additionalProperties: false,
    properties,
  });
  return {
    settings: closed(
      Object.fromEntries(ordinarySettings(chart).map(({ env, schema }) => [env, settingSchema(schema)])),
    ),
    secretSettings: closed(
      Object.fromEntries(secretSettings(chart).map(({ env }) => [env, secretKeySchema])),
    ),
  };
}

const secretKeySchema: JsonSchema = {
  type: ['object', 'null'],
  required: ['name', 'key'],
  additionalProperties: false,
  properties: { name: { type: 'string' }, key: { type: 'string' } },
};

function settingDoc({ doc, form, fallback }: Setting<unknown>): string {
  const otherwise =
    fallback === undefined ? 'Required' : fallback.text === '' ? '' : `Default \`${fallback.text}\``;
  const takes = `${form.charAt(0).toUpperCase()}${form.slice(1)}.`;
  return [doc, form === 'text' ? '' : takes, otherwise === '' ? '' : `${otherwise}.`]
    .filter((part) => part !== '')
    .join(' ');
}

/**
 * Null leaves a setting alone. Text may look like a number: `30`. Of durations without a unit only
 * 0 may, unless they are seconds.
 */
function settingSchema({ type, enum: words, pattern, ...bounds }: SettingSchema): JsonSchema {
  if (words !== undefined) return { enum: [...words, null] };
  if (pattern !== undefined) {
    const isSeconds = new RegExp(pattern).test('1');
    return { type: ['string', 'number', 'null'], pattern, minimum: 0, ...(isSeconds ? {} : { maximum: 0 }) };
  }
  return { type: [type, ...(type === 'string' ? ['number'] : []), 'null'], ...bounds };
}

function getDefault({ settingDefaults }: ServiceChart, { env }: Setting<unknown>): string {
  const value = settingDefaults[env];
  return value === undefined ? '' : ` ${JSON.stringify(value)}`;
}

function comment(text: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length >= lineWidth) lines.push(`  # ${word}`);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
