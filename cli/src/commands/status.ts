import { createAuthClient, type RequestError, unwrap } from '@tollgate/admin-clients/clients';
import type { Command } from 'commander';
import { connectLimiters, readContext } from '../connection/connect.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { printTable } from '../output/table.ts';
import { printJson, style } from '../output/terminal.ts';
import { type CommonOptions, command, type Environment, toSource } from './command.ts';

/** The result of a check of a service. */
interface Finding {
  readonly service: string;
  readonly url: string;
  readonly ok: boolean;
  readonly detail: string;
}

/** `tollgate status`: whether the services of the context answer, and accept the credentials. */
export function statusCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('status', 'Check that all services of the context answer and accept its key.', [
    'tollgate status',
    'tollgate status --context shop --json',
  ]).action(async (options: CommonOptions) => {
    const findings = await Promise.all([
      ...(await checkAuth(environment, options)),
      ...(await checkLimiters(environment, options)),
    ]);
    if (findings.length === 0)
      throw new CommandFailure('the context has no services: run tollgate context set --help');
    if (options.json) printJson(terminal, findings);
    else
      printTable(terminal, findings, {
        columns: {
          SERVICE: ({ service }) => service,
          URL: ({ url }) => url,
          STATUS: ({ ok }) => (ok ? 'ok' : 'FAILED'),
          DETAIL: ({ detail }) => detail,
        },
        empty: '',
      });
    const failed = findings.filter(({ ok }) => !ok);
    if (failed.length === 0) return;
    const message = `${failed.length} of ${findings.length} services have a problem`;
    throw new CommandFailure(style(terminal, 'red', message), exitCodes.unhealthy);
  });
}

async function checkAuth(environment: Environment, options: CommonOptions): Promise<Promise<Finding>[]> {
  const { authUrl: url, key = '' } = await readContext(toSource(environment, options));
  if (url === undefined) return [];
  const client = createAuthClient({ url, token: key, timeoutMs: 5_000 });
  return [
    toFinding('auth', url, async () => {
      const { version } = await unwrap(client.GET('/health'));
      const { status } = await unwrap(client.GET('/ready'));
      return `version ${version}, ${status}`;
    }),
  ];
}

async function checkLimiters(environment: Environment, options: CommonOptions): Promise<Promise<Finding>[]> {
  const { limiterUrls = [] } = await readContext(toSource(environment, options));
  if (limiterUrls.length === 0) return [];
  const limiters = await connectLimiters(toSource(environment, options));
  return limiters.map(({ url, client }) =>
    toFinding('ratelimit', url, async () => {
      const query = { limit: 1 };
      const { overrides } = await unwrap(client.GET('/v1/overrides', { params: { query } }));
      return overrides.length === 0 ? 'answers' : 'answers, with overrides in force';
    }),
  );
}

async function toFinding(service: string, url: string, check: () => Promise<string>): Promise<Finding> {
  try {
    return { service, url, ok: true, detail: await check() };
  } catch (error) {
    // Parsed boundary: unwrap throws nothing else.
    const { code, message } = error as RequestError;
    return { service, url, ok: false, detail: `${code}: ${message}` };
  }
}
