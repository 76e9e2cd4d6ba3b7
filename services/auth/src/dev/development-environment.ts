import { resolve } from 'node:path';
import type { Environment } from '@tollgate/kit/settings';
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
  const folder = resolve(givenValue(env, developmentFolder) ?? developmentFolder.fallback?.value ?? '.');
  await makeDevelopmentFolder(folder);
  const defaults = {
    siteUrl: 'http://localhost:3000',
    apiExternalUrl: `http://localhost:${givenValue(env, port) ?? port.fallback?.text}`,
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
    return givenValue(env, setting) === undefined ? [[setting.env, value] as const] : [];
  });
  return { ...env, ...Object.fromEntries(unset) };
}

function givenValue(
  env: Environment,
  { env: name, aliases }: { readonly env: string; readonly aliases: readonly string[] },
): string | undefined {
  return [name, ...aliases].map((variable) => env[variable]).find((value) => value !== undefined);
}
