import {
  defineSettings,
  type Environment,
  type ParsedSettings,
  parseSettings,
  type SettingsCheck,
  type SettingsOf,
} from '@tollgate/kit/settings';
import { parseRedisAddress } from '../backends/redis/redis-address.ts';
import { chooseSink, type SinkSwitches } from '../stats/choose-sink.ts';
import { counterSettings, decisionSettings } from './decision-settings.ts';
import { redisSettings } from './redis-settings.ts';
import { ruleSettings } from './rule-settings.ts';
import { serverSettings, serverTlsSettings } from './server-settings.ts';
import { statsSettings } from './stats-settings.ts';
import { tracingSettings } from './tracing-settings.ts';

/** Every setting of the service, in the order of docs/settings-ratelimit.md. */
export const settingsSpec = defineSettings({
  ...serverSettings,
  ...serverTlsSettings,
  ...ruleSettings,
  ...decisionSettings,
  ...counterSettings,
  ...redisSettings,
  ...statsSettings,
  ...tracingSettings,
});

/** The settings as the composition root sees them. */
export type Settings = SettingsOf<typeof settingsSpec>;

type Check = SettingsCheck<typeof settingsSpec>;

const tlsNeedsFiles: Check = (s, { nameOf }) => {
  if (!s.grpcServerUseTls) return undefined;
  const missing = (['grpcServerTlsCert', 'grpcServerTlsKey'] as const).find((key) => s[key] === '');
  return missing === undefined
    ? undefined
    : { variable: nameOf(missing), expected: `a PEM file, because ${nameOf('grpcServerUseTls')} is true` };
};

const clientTlsNeedsServerTls: Check = (s, { nameOf }) =>
  s.grpcClientTlsCacert !== '' && !s.grpcServerUseTls
    ? {
        variable: nameOf('grpcServerUseTls'),
        value: 'false',
        expected: `true, because ${nameOf('grpcClientTlsCacert')} is set`,
      }
    : undefined;

const sanNeedsAuthority: Check = (s, { nameOf }) =>
  s.grpcClientTlsSan !== '' && s.grpcClientTlsCacert === ''
    ? {
        variable: nameOf('grpcClientTlsCacert'),
        expected: `a PEM file, because ${nameOf('grpcClientTlsSan')} is set`,
      }
    : undefined;

const redisAddress: Check = (s, { nameOf }) => {
  if (s.backendType !== 'redis') return undefined;
  const result = parseRedisAddress(s.redisUrl, s.redisSocketType);
  return result.ok ? undefined : { variable: nameOf('redisUrl'), expected: result.expected };
};

const redisPerSecondAddress: Check = (s, { nameOf }) => {
  if (s.backendType !== 'redis' || !s.redisPerSecond) return undefined;
  const result = parseRedisAddress(s.redisPerSecondUrl, s.redisPerSecondSocketType);
  return result.ok ? undefined : { variable: nameOf('redisPerSecondUrl'), expected: result.expected };
};

const redisClientPair: Check = (s, { nameOf }) =>
  (s.redisTlsClientCert === '') === (s.redisTlsClientKey === '')
    ? undefined
    : {
        variable: nameOf(s.redisTlsClientCert === '' ? 'redisTlsClientCert' : 'redisTlsClientKey'),
        expected: 'a PEM file: certificate and key belong together',
      };

const oneSink: Check = (s, { nameOf }) => {
  const choice = chooseSink(sinkSwitches(s));
  return choice.ok
    ? undefined
    : { variable: nameOf('usePullMetrics'), value: 'true', expected: choice.problem };
};

/** The settings that choose where statistics go. */
export function sinkSwitches(
  s: Pick<Settings, 'usePushStats' | 'usePullMetrics' | 'disableStats'>,
): SinkSwitches {
  return { pushStats: s.usePushStats, taggedPush: false, pull: s.usePullMetrics, disabled: s.disableStats };
}

/** Reads the settings from the environment; all problems at once. */
export function readSettings(env: Environment): ParsedSettings<typeof settingsSpec> {
  return parseSettings(settingsSpec, env, {
    checks: [
      tlsNeedsFiles,
      clientTlsNeedsServerTls,
      sanNeedsAuthority,
      redisAddress,
      redisPerSecondAddress,
      redisClientPair,
      oneSink,
    ],
  });
}
