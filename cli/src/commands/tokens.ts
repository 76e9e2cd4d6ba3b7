import { RequestError, unwrap } from '@tollgate/admin-clients/clients';
import type { Command } from 'commander';
import type { JSONWebKeySet } from 'jose';
import { authClient, readContext } from '../connection/connect.ts';
import {
  checkToken,
  type DecodedToken,
  decodeToken,
  formatTime,
  type Issuer,
  type TokenFinding,
} from '../connection/token-check.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { printTable } from '../output/table.ts';
import { printJson, type Terminal } from '../output/terminal.ts';
import { type CommonOptions, command, type Environment, group, toSource } from './command.ts';

/** `tollgate tokens` */
export function tokenCommands(environment: Environment): Command {
  return group('tokens', 'Access tokens.', [inspectCommand(environment)]);
}

interface InspectOptions extends CommonOptions {
  readonly session?: true;
}

function inspectCommand(environment: Environment): Command {
  const { terminal, readInput } = environment;
  return command('inspect', 'Show what an access token says, and whether it is valid and why not.', [
    'tollgate tokens inspect < token',
    'tollgate tokens inspect --session < token',
    'pbpaste | tollgate tokens inspect --json',
  ])
    .exitsWithFinding('the token is not valid')
    .argument('[token]', 'The token. Default: standard input, because arguments are visible to others.')
    .option(
      '--session',
      'Send the token to the auth server that has issued it, and say whether its session is alive.',
    )
    .action(async (given: string | undefined, options: InspectOptions) => {
      const text = (given ?? (await readInput())).trim().replace(/^(?:authorization: *)?bearer +/i, '');
      const decoded = decodeToken(text);
      if (decoded === undefined)
        throw new CommandFailure(
          'not a JWT: three parts of base64url, separated by dots, are expected. API keys and refresh tokens have no content to show',
        );
      const findings = await inspect(environment, decoded, options);
      const valid = findings.every(({ ok }) => ok !== false);
      const { header, claims } = decoded;
      if (options.json) printJson(terminal, { valid, header, claims, checks: findings });
      else printToken(terminal, decoded, findings);
      const problems = findings.filter(({ ok }) => ok === false).map(({ check }) => check);
      if (!valid)
        throw new CommandFailure(`the token is not valid: ${problems.join(', ')}`, exitCodes.unhealthy);
    });
}

async function inspect(
  environment: Environment,
  decoded: DecodedToken,
  options: InspectOptions,
): Promise<readonly TokenFinding[]> {
  const { authUrl } = await readContext(toSource(environment, options));
  const issuer = authUrl === undefined ? undefined : await readIssuer(authUrl);
  const findings = await checkToken(decoded, issuer, Date.now());
  if (!options.session) return findings;
  // No other server gets the token than the one that has issued it.
  const isSigned = findings.some(({ check, ok }) => check === 'signature' && ok === true);
  const isFromServer = isSigned || (issuer !== undefined && decoded.claims.iss === issuer.issuer);
  const isRefused = findings.some(({ ok }) => ok === false);
  return authUrl === undefined || !isFromServer || isRefused
    ? findings
    : [...findings, await checkSession(authUrl, decoded)];
}

/** @throws RequestError */
async function readIssuer(url: string): Promise<Issuer> {
  const client = authClient({ authUrl: url, token: '' });
  if (client === undefined) throw new CommandFailure('the context has no auth server');
  const metadata = await unwrap(client.GET('/.well-known/openid-configuration'));
  const keys = await unwrap(client.GET('/.well-known/jwks.json'));
  // Parsed boundary: jose checks the keys when it uses one.
  return { issuer: String(metadata.issuer), keys: keys as unknown as JSONWebKeySet };
}

/** Asks the auth server whether the session of the token is alive. */
async function checkSession(authUrl: string, { token, claims }: DecodedToken): Promise<TokenFinding> {
  const check = 'session' as const;
  if (typeof claims.session_id !== 'string' || claims.session_id === '')
    return { check, ok: undefined, detail: 'the token has no session' };
  try {
    const client = authClient({ authUrl, token });
    if (client !== undefined) await unwrap(client.GET('/oauth/userinfo'));
    return { check, ok: true, detail: 'active' };
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    const isRefused = error.status === 401 || error.status === 403;
    return {
      check,
      ok: isRefused ? false : undefined,
      detail: isRefused ? error.message : `not checked: ${error.message}`,
    };
  }
}

/** Claims that are times, in seconds. */
const timeClaims: readonly string[] = ['exp', 'iat', 'nbf', 'auth_time'];

function printToken(
  terminal: Terminal,
  { header, claims }: DecodedToken,
  findings: readonly TokenFinding[],
): void {
  const nowMs = Date.now();
  const rows = [
    ...Object.entries(header).map(([name, value]) => ({ name: `header ${name}`, value })),
    ...Object.entries(claims).map(([name, value]) => ({ name, value })),
  ];
  printTable(terminal, rows, {
    columns: {
      CLAIM: ({ name }) => name,
      VALUE: ({ name, value }) =>
        timeClaims.includes(name) && typeof value === 'number'
          ? formatTime(value, nowMs)
          : typeof value === 'string'
            ? value
            : JSON.stringify(value),
    },
    empty: '',
  });
  terminal.print('\n');
  printTable(terminal, findings, {
    columns: {
      CHECK: ({ check }) => check,
      RESULT: ({ ok }) => (ok === undefined ? 'unknown' : ok ? 'ok' : 'FAILED'),
      DETAIL: ({ detail }) => detail,
    },
    empty: '',
  });
}
