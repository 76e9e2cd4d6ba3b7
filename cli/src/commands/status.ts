import { type AuthClient, RequestError, unwrap, type XdsClient } from '@tollgate/admin-clients/clients';
import type { Command } from 'commander';
import { authClient, type Limiter, limitersOf, readContext, xdsClient } from '../connection/connect.ts';
import { personName } from '../connection/sign-in.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { printTable } from '../output/table.ts';
import { printJson } from '../output/terminal.ts';
import { type CommonOptions, command, type Environment, toSource } from './command.ts';

/** The result of a check of a service. */
interface Finding {
  readonly service: string;
  readonly url: string;
  readonly ok: boolean;
  readonly detail: string;
}

/** A healthy service answers sooner. */
const timeoutMs = 5_000;

/** `tollgate status`: whether the services of the context answer, and accept the credentials. */
export function statusCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('status', 'Check that all services of the context answer and accept its key.', [
    'tollgate status',
    'tollgate status --context shop --json',
  ])
    .exitsWithFinding('a service has a problem')
    .action(async (options: CommonOptions) => {
      const context = await readContext(toSource(environment, options));
      const { authUrl = '', xdsUrl = '' } = context;
      const auth = authClient(context, timeoutMs);
      const xds = xdsClient(context, timeoutMs);
      const findings = await Promise.all([
        ...(auth === undefined ? [] : [checkAuth(authUrl, auth)]),
        ...(auth === undefined || typeof context.token === 'string' ? [] : [checkSignIn(authUrl, auth)]),
        ...limitersOf(context, timeoutMs).map(checkLimiter),
        ...(xds === undefined ? [] : [checkXds(xdsUrl, xds)]),
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
      throw new CommandFailure(message, exitCodes.unhealthy);
    });
}

function checkAuth(url: string, client: AuthClient): Promise<Finding> {
  return toFinding('auth', url, async () => {
    const { version } = await unwrap(client.GET('/health'));
    const { status } = await unwrap(client.GET('/ready'));
    return `version ${withoutPrefix(version)}, ${status}`;
  });
}

/** Who one is, for a context with a sign-in. */
function checkSignIn(url: string, client: AuthClient): Promise<Finding> {
  return toFinding('sign-in', url, () => personName(client));
}

function checkLimiter({ url, client }: Limiter): Promise<Finding> {
  return toFinding('ratelimit', url, async () => {
    const { overrides } = await unwrap(client.GET('/v1/overrides', { params: { query: { limit: 1 } } }));
    return overrides.length === 0 ? 'answers' : 'answers, with overrides in force';
  });
}

function checkXds(url: string, client: XdsClient): Promise<Finding> {
  return toFinding('xds', url, async () => {
    const { release, ready, reason } = await unwrap(client.GET('/v1/status'));
    if (!ready) throw new RequestError(reason ?? 'no reason is given', { code: 'not_ready' });
    return `version ${withoutPrefix(release)}, ready`;
  });
}

/** The auth server writes `v0.1.0`, as GoTrue does, and the others write `0.1.0`. */
function withoutPrefix(version: string): string {
  return version.replace(/^v/, '');
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
