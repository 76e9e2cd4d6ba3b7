import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { findMisspelled, type SettingProblem, type SettingsSpec } from '@tollgate/kit/settings';
import { CommandFailure } from '../failure.ts';
import { type Finding, fail, pass } from './finding.ts';

/** Services with settings, and what begins the names of their variables. */
const services = { auth: ['SVC_', 'GOTRUE_'], ratelimit: [], xds: ['XDS_'] } as const;

export type ServiceName = keyof typeof services;

export const serviceNames = Object.keys(services) as ServiceName[]; // of exactly these keys

/** The parts of `config/settings.ts` that every service has. */
interface SettingsModule {
  readonly settingsSpec: SettingsSpec;
  readonly readSettings: (
    env: NodeJS.ProcessEnv,
  ) => { readonly ok: true } | { readonly ok: false; readonly problems: readonly SettingProblem[] };
}

/** Checks a file of variables as the service does when it starts. @throws CommandFailure */
export async function checkSettings(service: ServiceName, path: string): Promise<readonly Finding[]> {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new CommandFailure(`${path} cannot be read: ${error.message}`);
  });
  const { settingsSpec, readSettings } = await loadModule(service);
  const env = parseEnv(text);
  const read = readSettings(env);
  const check = { check: 'settings', target: path } as const;
  const problems = read.ok ? [] : read.problems.filter((problem) => !hasDefault(problem, env));
  const findings = [
    ...problems.map(({ variable, value, expected }) =>
      fail(
        check,
        value === undefined ? `${variable} is not set` : `${variable} is ${value}`,
        `expected ${expected}`,
      ),
    ),
    ...findMisspelled(settingsSpec, env, services[service]).map(({ variable, meant }) =>
      fail(check, `${variable} is no setting`, `did you mean ${meant}?`),
    ),
  ];
  return findings.length > 0 ? findings : [pass(check, `valid for services/${service}`)];
}

/** In development mode, the auth server has defaults for what is missing. */
function hasDefault({ value }: SettingProblem, { SVC_MODE }: NodeJS.ProcessEnv): boolean {
  return value === undefined && SVC_MODE?.toLowerCase() === 'development';
}

/** An image has the code of its own service only. */
async function loadModule(service: ServiceName): Promise<SettingsModule> {
  const path = resolve(import.meta.dirname, '../../../services', service, 'src/config/settings.ts');
  if (!existsSync(path))
    throw new CommandFailure(
      `services/${service} is not installed here: use a checkout, or the image of ${service}`,
    );
  // Every service exports these names.
  return (await import(path)) as SettingsModule;
}
