import type { Environment } from '@tollgate/kit/settings';
import type { ImpliedValue } from '@tollgate/kit/start-report';
import { givenValue } from './builders.ts';
import { isStrict, profileDefaults } from './security-profile.ts';
import { settingsSpec } from './settings.ts';

/**
 * Values that the mode and the security profile imply, by main variable. `prepared` is the
 * environment with the defaults of the mode.
 */
export function findImplied(given: Environment, prepared: Environment): ReadonlyMap<string, ImpliedValue> {
  const { mode, securityProfile, apiHost, otelExporterPullHost } = settingsSpec;
  const byMode = `${mode.env}=development`;
  const byProfile = `${securityProfile.env}=strict`;
  const isDevelopment = mode.parse(givenValue(mode, given) ?? '') === 'development';
  const loopback = { value: '127.0.0.1', by: byMode, isForced: true } as const;
  const ofProfile = isStrict(given) ? profileDefaults(settingsSpec) : [];
  return new Map<string, ImpliedValue>([
    ...ofProfile.map(({ setting, value }) => [setting.env, { value, by: byProfile }] as const),
    ...Object.entries(prepared).flatMap(([variable, value]) =>
      value === undefined || given[variable] !== undefined
        ? []
        : [[variable, { value, by: byMode }] as const],
    ),
    ...(isDevelopment ? [apiHost, otelExporterPullHost].map(({ env }) => [env, loopback] as const) : []),
  ]);
}
