import {
  defineSettings,
  type Environment,
  parseSettings,
  type SettingProblem,
  type SettingsCheck,
  type SettingValues,
} from '@tollgate/kit/settings';
import { adminChecks, adminSettings } from './admin.ts';
import { type Mogrifier, readMogrifiers } from './mogrifiers.ts';
import { counterSettings, decisionSettings } from './ratelimit.ts';
import { redisCredentialChecks } from './redis-credentials.ts';
import { parseRedisTarget } from './redis-target.ts';
import { ruleChecks, ruleSettings, xdsSettings } from './rules.ts';
import { serverSettings, serverTlsSettings } from './server.ts';
import { chooseSink, statsSettings, tracingSettings } from './stats.ts';
import { memcacheChecks, memcacheSettings, redisSettings } from './stores.ts';

/** Every setting of the service, in the order of docs/settings-ratelimit.md. */
export const settingsSpec = defineSettings({
  ...serverSettings,
  ...serverTlsSettings,
  ...adminSettings,
  ...ruleSettings,
  ...xdsSettings,
  ...decisionSettings,
  ...counterSettings,
  ...redisSettings,
  ...memcacheSettings,
  ...statsSettings,
  ...tracingSettings,
});

/** Settings, and the mogrifiers, whose variables depend on `TAGSTATSD_MOGRIFIERS`. */
export type Settings = SettingValues<typeof settingsSpec> & { readonly mogrifiers: readonly Mogrifier[] };

type Check = SettingsCheck<typeof settingsSpec>;

const tlsNeeds =
  (file: 'grpcServerTlsCert' | 'grpcServerTlsKey'): Check =>
  (s, { problem, variableName }) =>
    s.grpcServerUseTls && s[file] === ''
      ? problem(file, `a PEM file, because ${variableName('grpcServerUseTls')} is true`)
      : undefined;

const clientTlsNeedsServerTls: Check = (s, { problem, variableName }) =>
  s.grpcClientTlsCacert !== '' && !s.grpcServerUseTls
    ? {
        ...problem('grpcServerUseTls', `true, because ${variableName('grpcClientTlsCacert')} is set`),
        value: 'false',
      }
    : undefined;

const sanNeedsAuthority: Check = (s, { problem, variableName }) =>
  s.grpcClientTlsSan !== '' && s.grpcClientTlsCacert === ''
    ? problem('grpcClientTlsCacert', `a PEM file, because ${variableName('grpcClientTlsSan')} is set`)
    : undefined;

/** It never reports a failure, so that the policy would have no effect. */
const memcachedFailsOpen: Check = (s, { problem, variableName }) =>
  s.backendType === 'memcache' && (s.onStoreFailure === 'deny' || s.onStoreFailure === 'local')
    ? {
        ...problem(
          'onStoreFailure',
          `fail or allow, because ${variableName('backendType')} is memcache, which fails open`,
        ),
        value: s.onStoreFailure,
      }
    : undefined;

const redisAddress: Check = (s, context) =>
  s.backendType === 'redis' ? addressProblem('redis', s, context) : undefined;

const redisPerSecondAddress: Check = (s, context) =>
  s.backendType === 'redis' && s.redisPerSecond ? addressProblem('redisPerSecond', s, context) : undefined;

function addressProblem(
  instance: 'redis' | 'redisPerSecond',
  s: SettingValues<typeof settingsSpec>,
  { problem }: Parameters<Check>[1],
): SettingProblem | undefined {
  const key = `${instance}Url` as const;
  const result = parseRedisTarget(s[`${instance}Type`], s[key], s[`${instance}SocketType`]);
  return result.ok ? undefined : problem(key, result.expected);
}

const redisClientPair: Check = (s, { problem }) =>
  (s.redisTlsClientCert === '') === (s.redisTlsClientKey === '')
    ? undefined
    : problem(
        s.redisTlsClientCert === '' ? 'redisTlsClientCert' : 'redisTlsClientKey',
        'a PEM file: certificate and key belong together',
      );

const oneSink: Check = (s, { problem, variableName }) => {
  const choice = chooseSink(s);
  if (choice.ok) return undefined;
  const why = `${variableName(choice.because)} is true, and there can be only one sink`;
  const byDefault = choice.turnOff === 'usePushStats' ? ' (the default is true)' : '';
  return { ...problem(choice.turnOff, `false${byDefault}: ${why}`), value: 'true' };
};

type ReadSettings =
  | { readonly ok: true; readonly settings: Settings }
  | { readonly ok: false; readonly problems: readonly SettingProblem[] };

/** Parses the environment; returns all problems at once. */
export function readSettings(env: Environment): ReadSettings {
  const parsed = parseSettings(settingsSpec, env, { checks });
  const rewriting = readMogrifiers(env);
  const removed = findRemoved(env);
  if (parsed.ok && rewriting.ok && removed.length === 0) {
    return { ok: true, settings: Object.freeze({ ...parsed.settings, mogrifiers: rewriting.mogrifiers }) };
  }
  const problems = [parsed, rewriting].flatMap((read) => (read.ok ? [] : read.problems));
  return { ok: false, problems: [...problems, ...removed] };
}

/** One process would do the work of several, so that a setting of the past ends the start. */
function findRemoved({ WORKERS: value = '1' }: Environment): readonly SettingProblem[] {
  const expected = '1 or unset: a limiter is one process now, run as many replicas instead (replicaCount)';
  return value === '1' ? [] : [{ variable: 'WORKERS', value, expected }];
}

const checks: readonly Check[] = [
  tlsNeeds('grpcServerTlsCert'),
  tlsNeeds('grpcServerTlsKey'),
  clientTlsNeedsServerTls,
  sanNeedsAuthority,
  ...adminChecks,
  memcachedFailsOpen,
  ...ruleChecks,
  redisAddress,
  redisPerSecondAddress,
  redisClientPair,
  ...redisCredentialChecks,
  ...memcacheChecks,
  oneSink,
];
