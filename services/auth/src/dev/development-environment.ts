import { resolve } from 'node:path';
import type { Environment } from '@tollgate/kit/settings';
import { givenValue } from '../settings/given-value.ts';
import { settingsSpec } from '../settings/settings.ts';
import { embeddedDatabaseUrl } from './development-database.ts';
import { makeDevelopmentFolder } from './development-folder.ts';
import { keptSecret } from './kept-secret.ts';

/** Is development mode asked for? */
function isDevelopment(env: Environment): boolean {
  const { mode } = settingsSpec;
  return [mode.env, ...mode.aliases].some((name) => env[name]?.toLowerCase() === 'development');
}

/** In development mode, fills in what is not set. */
export async function withDefaultsOfMode(env: Environment): Promise<Environment> {
  return isDevelopment(env) ? withDevelopmentDefaults(env) : env;
}

/** Fills in what must otherwise be set; whatever is set stays. Secrets are random, and the same at the next start. */
async function withDevelopmentDefaults(env: Environment): Promise<Environment> {
  const { developmentFolder, port } = settingsSpec;
  const folder = resolve(givenValue(developmentFolder, env) ?? developmentFolder.fallback?.value ?? '.');
  await makeDevelopmentFolder(folder);
  const defaults = {
    siteUrl: 'http://localhost:3000',
    apiExternalUrl: `http://localhost:${givenValue(port, env) ?? port.fallback?.text}`,
    dbDriver: 'postgres',
    databaseUrl: embeddedDatabaseUrl,
    jwtSecret: await keptSecret(folder, 'jwt-secret'),
    externalAnonymousUsersEnabled: 'true',
    externalPhoneEnabled: 'true',
    // The site under development may serve templates.
    mailerTemplatePrivateHosts: 'localhost,127.0.0.1',
    smtpAdminEmail: 'auth@localhost',
    smsProvider: 'log',
  } as const;
  const unset = Object.entries(defaults).flatMap(([key, value]) => {
    const setting = settingsSpec[key as keyof typeof defaults]; // a key of the object just above
    return givenValue(setting, env) === undefined ? [[setting.env, value] as const] : [];
  });
  return { ...env, ...Object.fromEntries(unset) };
}
