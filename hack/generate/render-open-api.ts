import { createLogger } from '@tollgate/kit/logger';
import { buildApp } from '../../services/auth/src/app.ts';
import { readSettings } from '../../services/auth/src/config/settings.ts';

/** Nothing of this is reached: the application is put together and not started. */
const environment = {
  SVC_SITE_URL: 'http://localhost:3000',
  SVC_API_EXTERNAL_URL: 'http://localhost:8081',
  SVC_DB_DRIVER: 'postgres',
  DATABASE_URL: 'postgres://localhost:5432/postgres',
  SVC_JWT_SECRET: 'never used to sign anything, but long enough',
  SVC_SMTP_ADMIN_EMAIL: 'auth@localhost',
  SVC_SMTP_HOST: 'localhost',
  SVC_SMTP_PORT: '25',
};

/** The OpenAPI document that the user authentication server serves at `/openapi.json`. */
export async function renderOpenApi(): Promise<string> {
  const read = readSettings(environment);
  if (!read.ok) throw new Error(`bad settings: ${JSON.stringify(read.problems)}`);
  const logger = createLogger({ level: 'fatal', format: 'json' });
  const app = await buildApp(read.settings, { logger, nowMs: Date.now });
  const document = await app.openApi();
  return `${JSON.stringify(document, null, 2)}\n`;
}
