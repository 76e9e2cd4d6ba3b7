// A web application that signs its users in with OpenID Connect, by the library openid-client. All
// it knows is the issuer, its id and its secret.
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import * as oidc from 'openid-client';

const { ISSUER = '', CLIENT_ID = '', CLIENT_SECRET = '', PORT = '3000' } = process.env;
const origin = `http://localhost:${PORT}`;
const issuer = new URL(ISSUER);
const config = await oidc.discovery(issuer, CLIENT_ID, CLIENT_SECRET, undefined, {
  // On this machine only.
  execute: issuer.hostname === 'localhost' ? [oidc.allowInsecureRequests] : [],
});

interface Session {
  /** The sign-in that this browser has started. */
  readonly checks?: { readonly pkceCodeVerifier: string; readonly expectedState: string };
  readonly name?: string;
  readonly idToken?: string;
}

/** By the cookie of the browser. A real application has a store that forgets old ones. */
const sessions = new Map<string, Session>();

type Reply = { readonly redirect: string } | { readonly html: string };

/** Sends the browser to the issuer. */
async function signIn(id: string): Promise<Reply> {
  const checks = { pkceCodeVerifier: oidc.randomPKCECodeVerifier(), expectedState: oidc.randomState() };
  sessions.set(id, { checks });
  const url = oidc.buildAuthorizationUrl(config, {
    redirect_uri: `${origin}/callback`,
    scope: 'openid email',
    state: checks.expectedState,
    code_challenge: await oidc.calculatePKCECodeChallenge(checks.pkceCodeVerifier),
    code_challenge_method: 'S256',
  });
  return { redirect: url.href };
}

/** The browser returns with a code. */
async function finish(id: string, url: URL): Promise<Reply> {
  const tokens = await oidc.authorizationCodeGrant(config, url, sessions.get(id)?.checks);
  const claims = tokens.claims();
  sessions.set(id, {
    name: String(claims?.email ?? claims?.sub),
    ...(tokens.id_token !== undefined && { idToken: tokens.id_token }),
  });
  return { redirect: '/' };
}

function signOut(id: string): Reply {
  const { idToken = '' } = sessions.get(id) ?? {};
  sessions.delete(id);
  const request = { id_token_hint: idToken, post_logout_redirect_uri: `${origin}/` };
  return { redirect: oidc.buildEndSessionUrl(config, request).href };
}

function show({ name }: Session = {}): Reply {
  if (name === undefined) return { html: '<a href="/sign-in">Sign in</a>' };
  return { html: `Signed in as ${escapeHtml(name)}. <a href="/sign-out">Sign out</a>` };
}

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`);
}

function answer(request: IncomingMessage, id: string): Promise<Reply> | Reply {
  const url = new URL(request.url ?? '/', origin);
  if (url.pathname === '/sign-in') return signIn(id);
  if (url.pathname === '/callback') return finish(id, url);
  return url.pathname === '/sign-out' ? signOut(id) : show(sessions.get(id));
}

const server = createServer(async (request, response) => {
  const id = /\bsession=([\w-]{36})/.exec(request.headers.cookie ?? '')?.[1] ?? randomUUID();
  response.setHeader('set-cookie', `session=${id}; HttpOnly; SameSite=Lax; Path=/`);
  try {
    const reply = await answer(request, id);
    if ('redirect' in reply) response.writeHead(303, { location: reply.redirect }).end();
    else response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(reply.html);
  } catch (error) {
    console.error(error);
    response.writeHead(400).end('The sign-in failed.');
  }
});
server.listen(Number(PORT), '127.0.0.1', () => console.log(`Open ${origin}`));
