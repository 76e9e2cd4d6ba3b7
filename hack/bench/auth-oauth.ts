import { createHash, randomBytes } from 'node:crypto';
import type autocannon from 'autocannon';
import type { Scenario } from './auth.ts';

/** Settings of the OAuth server: one client sends all requests. */
export const oauthSettings = {
  SVC_OAUTH_SERVER_ENABLED: 'true',
  // The page of an application asks for consent: its calls are measured, not the page.
  SVC_OAUTH_SERVER_AUTHORIZATION_PATH: '/consent',
  SVC_RATE_LIMIT_OAUTH_CLIENT: '1000000',
} as const;

const redirectUri = 'https://app.example.com/callback';
const verifier = randomBytes(32).toString('base64url');
const challenge = createHash('sha256').update(verifier).digest('base64url');

interface Client {
  readonly client_id: string;
  readonly client_secret: string;
}

async function createClient(url: string, adminToken: string): Promise<Client> {
  const response = await fetch(`${url}/admin/oauth/clients`, {
    method: 'POST',
    headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ client_name: 'bench', redirect_uris: [redirectUri] },
      token_endpoint_auth_method: 'client_secret_post',
    }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`no client: ${response.status} ${text}`);
  return JSON.parse(text);
}

/**
 * The code flow, request by request: each scenario uses up what the one before it has made. `user`
 * is an access token of the user, who consents with the first request.
 */
export async function oauthScenarios(
  url: string,
  { user, admin }: { readonly user: string; readonly admin: string },
): Promise<readonly Scenario[]> {
  const client = await createClient(url, admin);
  const [requests, codes, tokens]: [string[], string[], string[]] = [[], [], []];
  const authorizationUrl = `/oauth/authorize?${new URLSearchParams({
    ...{
      client_id: client.client_id,
      redirect_uri: redirectUri,
      response_type: 'code',
      scope: 'openid email',
    },
    ...{ code_challenge: challenge, code_challenge_method: 'S256' },
  })}`;
  const authorize: autocannon.Request = {
    path: authorizationUrl,
    onResponse: (_status, _body, _context, headers) => {
      // The library's type has no location.
      const { location = '' } = headers as { readonly location?: string };
      requests.push(new URL(location).searchParams.get('authorization_id') ?? '');
    },
  };
  const authorization = { authorization: `Bearer ${user}` };
  const consent: autocannon.Request = {
    setupRequest: (request) => ({
      ...{ ...request, headers: authorization },
      path: `/oauth/authorizations/${requests.pop()}`,
    }),
    onResponse: (_status, body) => {
      codes.push(new URL(JSON.parse(body).redirect_url).searchParams.get('code') ?? '');
    },
  };
  const redeem: autocannon.Request = {
    ...{ method: 'POST', path: '/oauth/token', headers: { 'content-type': 'application/json' } },
    setupRequest: (request) => ({
      ...request,
      body: JSON.stringify({
        ...{ grant_type: 'authorization_code', ...client, code: codes.pop(), code_verifier: verifier },
      }),
    }),
    onResponse: (_status, body) => void tokens.push(JSON.parse(body).access_token),
  };
  const userinfo: autocannon.Request = {
    path: '/oauth/userinfo',
    setupRequest: (request) => ({ ...request, headers: { authorization: `Bearer ${tokens.at(-1)}` } }),
  };
  await consentOnce({ url, path: authorizationUrl, headers: authorization });
  const connections = 16;
  return [
    { name: 'GET /oauth/authorize', connections, requests: [authorize], status: 302 },
    { name: 'GET /oauth/authorizations/{id}', connections, requests: [consent] },
    { name: 'POST /oauth/token, code', connections, requests: [redeem] },
    { name: 'GET /oauth/userinfo', connections, requests: [userinfo] },
  ];
}

/** Later requests are within this consent. */
async function consentOnce({
  url,
  path,
  headers,
}: {
  readonly url: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}): Promise<void> {
  const started = await fetch(`${url}${path}`, { redirect: 'manual' });
  const id = new URL(started.headers.get('location') ?? '').searchParams.get('authorization_id');
  const opened = `${url}/oauth/authorizations/${id}`;
  await fetch(opened, { headers });
  const approved = await fetch(`${opened}/consent`, {
    ...{ method: 'POST', body: JSON.stringify({ action: 'approve' }) },
    headers: { ...headers, 'content-type': 'application/json' },
  });
  if (!approved.ok) throw new Error(`no consent: ${approved.status} ${await approved.text()}`);
}
