import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Environment } from '@tollgate/kit/settings';
import { givenValue } from '../config/builders.ts';
import { type Settings, settingsSpec } from '../config/settings.ts';
import { embeddedDatabaseUrl } from './database.ts';
import { createDevelopmentFolder } from './folder.ts';

/** A random secret, created at the first start in a file that only its owner can read. */
export async function getSecret(folder: string, name: string): Promise<string> {
  const file = join(folder, name);
  const stored = await readFile(file, 'utf8').catch(() => '');
  if (stored !== '') return stored.trim();
  const secret = randomBytes(32).toString('base64url');
  await writeFile(file, `${secret}\n`, { mode: 0o600 });
  return secret;
}

function isDevelopment(env: Environment): boolean {
  const { mode } = settingsSpec;
  return [mode.env, ...mode.aliases].some((name) => env[name]?.toLowerCase() === 'development');
}

/** In development mode, adds defaults for unset variables. */
export async function withDefaultsOfMode(env: Environment): Promise<Environment> {
  return isDevelopment(env) ? withDevelopmentDefaults(env) : env;
}

/** Defaults for required settings. Secrets are random, and kept for the next start. */
async function withDevelopmentDefaults(env: Environment): Promise<Environment> {
  const { developmentFolder, port } = settingsSpec;
  const folder = resolve(givenValue(developmentFolder, env) ?? developmentFolder.fallback?.value ?? '.');
  await createDevelopmentFolder(folder);
  const defaults = {
    siteUrl: 'http://localhost:3000',
    apiExternalUrl: `http://localhost:${givenValue(port, env) ?? port.fallback?.text}`,
    dbDriver: 'postgres',
    databaseUrl: embeddedDatabaseUrl,
    jwtSecret: await getSecret(folder, 'jwt-secret'),
    externalAnonymousUsersEnabled: 'true',
    externalPhoneEnabled: 'true',
    // The site under development may serve templates.
    mailerTemplatePrivateHosts: 'localhost,127.0.0.1',
    smtpAdminEmail: 'auth@localhost',
    smsProvider: 'log',
  } as const;
  const unset = Object.entries(defaults).flatMap(([key, value]) => {
    const setting = settingsSpec[key as keyof typeof defaults]; // a key of the object above
    return givenValue(setting, env) === undefined ? [[setting.env, value] as const] : [];
  });
  return { ...env, ...Object.fromEntries(unset) };
}

const mailLimits = `Emails are limited as in production: 30 per hour, and one confirmation per address in 15 minutes. Further requests get a 429.
To raise the limits:  SVC_RATE_LIMIT_EMAIL_SENT=1000 SVC_SMTP_MAX_FREQUENCY=1s npm start -w services/auth

`;

/** Commands to try, which development mode prints. */
export function developmentHints(
  port: number,
  settings: Pick<Settings, 'developmentFolder' | 'smtpMaxFrequencyMs'>,
): string {
  const url = `http://localhost:${port}`;
  return `
Development mode: ${url}, loopback only. Users and secrets are in ${resolve(settings.developmentFolder)}.

  curl ${url}/settings
  curl ${url}/signup -d '{"email":"ada@example.com","password":"correct horse"}'
  open ${url}/dev/mail and follow the link in the email, which is not sent, then:
  curl '${url}/token?grant_type=password' -d '{"email":"ada@example.com","password":"correct horse"}'
  curl ${url}/user -H "Authorization: Bearer $ACCESS_TOKEN"

${settings.smtpMaxFrequencyMs === undefined ? mailLimits : ''}From JavaScript, with @supabase/auth-js:  new AuthClient({ url: '${url}' })

`;
}
