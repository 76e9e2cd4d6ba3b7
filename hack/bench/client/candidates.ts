import { createRequire } from 'node:module';
import { AccessToken, Client, type Fetch } from '@tollgate/oauth2-client';
import { TokenManager } from '@tollgate/oauth2-client/token-manager';
import { measure } from 'mitata';
import * as openid from 'openid-client';

/** Throws when the result is not what it has to be. */
interface Candidate {
  readonly name: string;
  run(): Promise<void>;
}

/** Printed by the process of one candidate. */
export interface Measurement {
  readonly name: string;
  readonly callsPerSecond: number;
  /** CPU time of the process per call. */
  readonly cpuMicros: number;
}

/** An authorized request with its body read: by `fetch` alone, and in each way of ours. */
function requestCandidates(origin: string, send: Fetch = fetch): Candidate[] {
  const url = `${origin}/resource`;
  const client = new Client({ clientId: 'bench', clientSecret: 'secret', site: origin, fetch: send });
  const token = AccessToken.fromHash(client, {
    access_token: 'token-0',
    token_type: 'Bearer',
    expires_in: 3600,
  });
  const manager = new TokenManager({ client, token });
  return [
    {
      name: 'fetch',
      run: async () => {
        const response = await send(url, { headers: { authorization: 'Bearer token-0' } });
        demandBody(await response.text());
      },
    },
    { name: 'token.fetch', run: async () => demandBody(await (await token.fetch(url)).text()) },
    { name: 'token.get', run: async () => demandBody((await token.get(url)).body) },
    { name: 'manager.fetch', run: async () => demandBody(await (await manager.fetch(url)).text()) },
  ];
}

function demandBody(body: string) {
  if (!body.startsWith('{"id":7')) throw new Error(`not the resource: ${body}`);
}

/** The part of simple-oauth2 that is used; it has no types. */
interface SimpleOauth2 {
  ClientCredentials: new (config: {
    client: { id: string; secret: string };
    auth: { tokenHost: string; tokenPath: string };
  }) => { getToken(params: { scope: string }): Promise<{ token: { access_token?: unknown } }> };
}

const clientId = 'bench';
const clientSecret = 'a-secret-of-usual-length';
const scope = 'read write';

/** A client credentials token: by `fetch` alone, and by each library. */
function tokenCandidates(origin: string): Candidate[] {
  return [bareFetch(origin), ours(origin), openidClient(origin), simpleOauth2(origin)];
}

function bareFetch(origin: string): Candidate {
  const authorization = `Basic ${btoa(`${clientId}:${clientSecret}`)}`;
  return {
    name: 'fetch',
    run: async () => {
      const response = await fetch(`${origin}/oauth/token`, {
        method: 'POST',
        headers: { authorization, accept: 'application/json' },
        body: new URLSearchParams({ grant_type: 'client_credentials', scope }),
        signal: AbortSignal.timeout(10_000),
      });
      const { access_token } = (await response.json()) as { access_token?: unknown };
      demandToken(access_token);
    },
  };
}

function ours(origin: string): Candidate {
  const client = new Client({ clientId, clientSecret, site: origin });
  return {
    name: '@tollgate/oauth2-client',
    run: async () => demandToken((await client.clientCredentials.getToken({ scope })).token),
  };
}

function openidClient(origin: string): Candidate {
  const config = new openid.Configuration(
    { issuer: origin, token_endpoint: `${origin}/oauth/token` },
    clientId,
    undefined,
    openid.ClientSecretBasic(clientSecret),
  );
  openid.allowInsecureRequests(config);
  return {
    name: 'openid-client',
    run: async () => demandToken((await openid.clientCredentialsGrant(config, { scope })).access_token),
  };
}

function simpleOauth2(origin: string): Candidate {
  // The package has no types: SimpleOauth2 above is what its documentation says.
  const { ClientCredentials } = createRequire(import.meta.url)('simple-oauth2') as SimpleOauth2;
  const client = new ClientCredentials({
    client: { id: clientId, secret: clientSecret },
    auth: { tokenHost: origin, tokenPath: '/oauth/token' },
  });
  return {
    name: 'simple-oauth2',
    run: async () => demandToken((await client.getToken({ scope })).token.access_token),
  };
}

function demandToken(token: unknown) {
  if (typeof token !== 'string' || !token.startsWith('token-')) throw new Error(`no token: ${String(token)}`);
}

/** Bare `fetch` comes first: the others are compared with it. */
export const candidateLists = {
  tokens: tokenCandidates,
  requests: (origin: string) => requestCandidates(origin),
  requestsWithoutNetwork: (origin: string) => requestCandidates(origin, answerAtOnce),
} as const satisfies Record<string, (origin: string) => readonly Candidate[]>;

export type CandidateList = keyof typeof candidateLists;

function answerAtOnce(): Promise<Response> {
  return Promise.resolve(
    new Response('{"id":7,"name":"a resource"}', { headers: { 'content-type': 'application/json' } }),
  );
}

/** Runs one candidate alone in this process, as a library is in an application. */
async function measureCandidate(
  { name, run }: Candidate,
  { concurrency, ms }: { readonly concurrency: number; readonly ms: number },
): Promise<Measurement> {
  let calls = 0;
  const counted = async () => {
    await run();
    calls++;
  };
  await measure(counted, { concurrency, min_cpu_time: ms * 1e6 });
  calls = 0;
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  await measure(counted, { concurrency, min_cpu_time: ms * 1e6 });
  const seconds = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  return { name, callsPerSecond: calls / seconds, cpuMicros: (user + system) / calls };
}

// node candidates.ts <list> <index> <origin of the server> <calls in flight> <milliseconds>
if (import.meta.main) {
  // The arguments come from client.ts.
  const [list, index, origin = '', concurrency, ms] = process.argv.slice(2) as [CandidateList, ...string[]];
  const candidate = candidateLists[list](origin)[Number(index)];
  if (candidate === undefined) throw new Error(`${list} has no candidate ${index}`);
  const options = { concurrency: Number(concurrency), ms: Number(ms) };
  process.stdout.write(JSON.stringify(await measureCandidate(candidate, options)));
  process.exit();
}
