import { join } from 'node:path';
import { runProgram } from '@tollgate/testkit/processes';
import { jwtSecret } from './auth-server.ts';

/** The program of the service. */
export const program = join(import.meta.dirname, '../../src/main.ts');

/** Runs a command in a process of its own until it ends, with nothing but `env` set. */
export function runCommand(args: readonly string[], options: Parameters<typeof runProgram>[2]) {
  return runProgram(program, args, options);
}

/** The environment of a command on a database. */
export function operatorEnvironment(databaseUrl: string): Record<string, string> {
  return {
    LOG_LEVEL: 'warn',
    SVC_SITE_URL: 'https://example.com',
    SVC_API_EXTERNAL_URL: 'http://localhost:9999',
    SVC_DB_DRIVER: 'postgres',
    SVC_DB_DATABASE_URL: databaseUrl,
    SVC_JWT_SECRET: jwtSecret,
    SVC_SMTP_ADMIN_EMAIL: 'auth@example.com',
    SVC_SMTP_HOST: '127.0.0.1',
    SVC_SMTP_PORT: '2525',
  };
}

/** Runs a command on a database, as operators do. */
export function runOperatorCommand(
  databaseUrl: string,
  args: readonly string[],
  input = '',
  variables: Readonly<Record<string, string>> = {},
) {
  return runCommand(args, { env: { ...operatorEnvironment(databaseUrl), ...variables }, input });
}
