import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { TLSSocket } from 'node:tls';
import { type Certificates, makeCertificates } from '@tollgate/testkit/certificates';
import { temporaryFolder } from '@tollgate/testkit/folders';
import {
  calculateJwkThumbprint,
  createLocalJWKSet,
  EmbeddedJWK,
  exportJWK,
  exportPKCS8,
  generateKeyPair,
  type JWK,
  jwtVerify,
} from 'jose';
import { createAuthorizationServer } from '../../../src/testing.ts';
import type { NodeProgramInput } from './node-program.ts';
import type { WebProgramInput } from './web-program.ts';

/**
 * Servers of the programs: an authorization server and an API on another origin, both open to pages
 * of any origin, and a server that requires a client certificate.
 */
export interface Site {
  readonly inputs: { readonly web: WebProgramInput; readonly node: NodeProgramInput };
  close(): Promise<void>;
}

/** Starts it. What the program signs is judged by jose, not by the package itself. */
export async function startSite(): Promise<Site> {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
  const issuer = await listen();
  const api = await listen();

  const keys = createLocalJWKSet({ keys: [{ ...(await exportJWK(publicKey)), kid: 'key-1', alg: 'ES256' }] });
  const authorizationServer = createAuthorizationServer({
    issuer: issuer.origin,
    clients: [
      { clientId: 'client', clientSecret: 'secret' },
      { clientId: 'signer', verifyAssertion: (assertion) => isSignedFor(issuer.origin, assertion, keys) },
    ],
  });

  serve(issuer.server, async (request) => {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === '/echo') return new Response(await request.text());
    if (pathname === '/hang') return await new Promise<never>(() => {});
    if (pathname === '/redirect') return Response.redirect(searchParams.get('to') ?? '/', 302);
    return await authorizationServer.fetch(request);
  });
  serve(api.server, async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === '/headers') return new Response([...request.headers.keys()].join());
    return await answerWithDpop(request);
  });

  const rsaPair = await generateKeyPair('PS256', { extractable: true });
  const rsaKey = { ...(await exportJWK(rsaPair.privateKey)), alg: 'PS256' };
  const signingKey = { jwk: { ...(await exportJWK(privateKey)) }, pem: await exportPKCS8(privateKey) };
  const certificates = makeCertificates();
  const mutualTls = await listen(secureServer(certificates));
  const folder = temporaryFolder();
  const tokenFile = join(folder.path, 'token');
  writeFileSync(tokenFile, 'the.token.itself\n');
  return {
    inputs: {
      web: { issuer: issuer.origin, dpopApi: api.origin, unreachable, signingKey, rsaKey },
      node: {
        mutualTls: {
          url: mutualTls.origin.replace('http:', 'https:'),
          ca: certificates.ca.cert,
          cert: certificates.client.cert,
          key: certificates.client.key,
        },
        folder: folder.path,
        tokenFile,
      },
    },
    close: async () => {
      await Promise.all([issuer, api, mutualTls].map(({ server }) => close(server)));
      certificates.remove();
      folder.remove();
    },
  };
}

/** Answers with the common name of the client's certificate. */
function secureServer({ ca, server }: Certificates): Server {
  const options = { ca: ca.cert, cert: server.cert, key: server.key, requestCert: true };
  return createSecureServer(options, ({ socket }, response) => {
    // The socket of an https server.
    response.end((socket as TLSSocket).getPeerCertificate().subject.CN);
  });
}

/** A port that no system hands out by itself, that nothing uses, and that browsers do not block. */
const unreachable = 'http://127.0.0.1:2/';

async function isSignedFor(
  issuer: string,
  assertion: string,
  keys: ReturnType<typeof createLocalJWKSet>,
): Promise<boolean> {
  const audience = `${issuer}/oauth/token`;
  const { payload } = await jwtVerify(assertion, keys, { issuer: 'signer', subject: 'signer', audience });
  return typeof payload.jti === 'string';
}

/** The nonce that the API wants in every proof. */
const nonce = 'nonce-of-the-api';

/** @see RFC 9449 §7, §9 https://www.rfc-editor.org/rfc/rfc9449#section-7 */
async function answerWithDpop(request: Request): Promise<Response> {
  const proof = request.headers.get('dpop') ?? '';
  const { origin, pathname } = new URL(request.url);
  const { payload, protectedHeader } = await jwtVerify(proof, EmbeddedJWK, { typ: 'dpop+jwt' });
  if (payload.nonce !== nonce) {
    const challenge = { 'www-authenticate': 'DPoP error="use_dpop_nonce"', 'dpop-nonce': nonce };
    return Response.json({ error: 'use_dpop_nonce' }, { status: 401, headers: challenge });
  }
  const isAboutThis = payload.htm === request.method && payload.htu === `${origin}${pathname}`;
  if (!isAboutThis || typeof payload.ath !== 'string') return new Response('not about this', { status: 400 });
  // jwtVerify has read the key out of this member.
  return new Response(await calculateJwkThumbprint(protectedHeader.jwk as JWK));
}

/** Methods and headers that a page of another origin may use. */
const corsHeaders = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': '*',
  // `*` does not cover Authorization.
  'access-control-allow-headers': 'authorization, *',
  'access-control-expose-headers': '*, dpop-nonce, www-authenticate',
};

function serve(server: Server, answer: (request: Request) => Promise<Response>): void {
  server.on('request', async (incoming, outgoing) => {
    const headers = new Headers();
    for (const [name, values] of Object.entries(incoming.headersDistinct))
      for (const value of values ?? []) headers.append(name, value);
    const { method = 'GET' } = incoming;
    const body = await text(incoming);
    const init = { method, headers, ...(body !== '' && { body }) };
    const request = new Request(new URL(incoming.url ?? '/', `http://${incoming.headers.host}`), init);
    const response =
      method === 'OPTIONS'
        ? new Response(null, { status: 204 })
        : await answer(request).catch((error: unknown) => new Response(String(error), { status: 500 }));
    outgoing.writeHead(response.status, { ...Object.fromEntries(response.headers), ...corsHeaders });
    outgoing.end(await response.text());
  });
}

interface Listening {
  readonly server: Server;
  readonly origin: string;
}

/** On a free port of this machine. */
async function listen(server: Server = createServer()): Promise<Listening> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // A TCP server's address is never a string.
  const { port } = server.address() as AddressInfo;
  return { server, origin: `http://127.0.0.1:${port}` };
}

async function close(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}
