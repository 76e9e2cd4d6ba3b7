import { text } from 'node:stream/consumers';
import { isAppError } from '@tollgate/kit/errors';
import { hostAndPort } from '@tollgate/kit/text';
import type { RouteReference } from '@tollgate/policies/match/route';
import { readHeaderLines, readRoute } from '../admin/explain-question.ts';
import type { Settings } from '../config/settings.ts';
import { signJwt, tokenAudience, tokenIssuer } from '../keys/jwt.ts';
import { SigningKeySource } from '../keys/key-source.ts';
import type { Command } from './arguments.ts';
import { withDefaultsOfMode } from './development.ts';
import { createCommandLogger, loadSettings } from './load-settings.ts';
import { CommandError } from './operator.ts';

/** The server answers at once, and asks the rate limit service. */
const timeoutMs = 15_000;
/** Lifetime of the token for the one request. */
const tokenSeconds = 60;

/** `explain`: prints how a running server would decide a request, as JSON. */
export const explainCommand: Command = async ({ environmentFiles, args: [method = '', url = ''], flags }) => {
  const { settings } = await loadSettings(environmentFiles, withDefaultsOfMode);
  const credential = flags.credential === true ? (await text(process.stdin)).trim() : undefined;
  const { as, policy, aal, scopes: scope, aud: audience, org, address } = flags;
  const server = flags.server ?? `http://${hostAndPort(ownHost(settings), settings.port)}`;
  try {
    const headers = readHeaderLines(flags.headers ?? '');
    const route = flags.route === undefined ? undefined : toBody(readRoute(flags.route));
    const question = {
      ...{ method, url, headers, route, policy, address },
      ...{ credential, as, aal, scope, audience, org },
    };
    const response = await fetch(`${server.replace(/\/$/, '')}/admin/policies/explain`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${await createToken(settings)}` },
      body: JSON.stringify(question),
      signal: AbortSignal.timeout(timeoutMs),
    });
    const answer: unknown = await response.json();
    const isOk = response.status === 200;
    (isOk ? process.stdout : process.stderr).write(`${JSON.stringify(answer, undefined, 2)}\n`);
    if (!isOk) process.exitCode = 1;
  } catch (error) {
    const reason =
      error instanceof CommandError || isAppError(error)
        ? error.message
        : `${server} cannot be reached: --server <url> is that of a running server`;
    process.stderr.write(`${reason}\n`);
    process.exitCode = 1;
  }
};

const toBody = ({ sectionName, ...route }: RouteReference) => ({ ...route, section_name: sectionName });

/** The host that this machine reaches the API at. */
function ownHost({ apiHost }: Pick<Settings, 'apiHost'>): string {
  return apiHost === '' || apiHost === '0.0.0.0' || apiHost === '::' ? '127.0.0.1' : apiHost;
}

async function createToken(settings: Settings): Promise<string> {
  const [role] = settings.jwtAdminRoles;
  if (role === undefined) throw new CommandError('SVC_JWT_ADMIN_ROLES has no role');
  const { keys } = await SigningKeySource.open(settings, { logger: createCommandLogger(settings) });
  const iss = tokenIssuer(settings);
  const aud = tokenAudience('', settings);
  const iat = Math.floor(Date.now() / 1000);
  const claims = {
    role,
    iat,
    exp: iat + tokenSeconds,
    ...(iss !== '' && { iss }),
    ...(aud !== '' && { aud }),
  };
  return signJwt(claims, keys);
}
