import { once } from 'node:events';
import { connect, isIP } from 'node:net';
import { connect as connectTls, type PeerCertificate } from 'node:tls';
import { getRequestFailure } from '@tollgate/kit/errors';
import { type Finding, fail, pass } from './finding.ts';

/** Time for a connection or a response. A healthy service is faster. */
const timeoutMs = 5_000;

/** Certificates are renewed earlier. */
const expiresSoonMs = 14 * 24 * 3_600_000;

/** Tokens and signatures tolerate less than a minute. */
const maxClockDifferenceMs = 5_000;

const portRemedies: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there: start the service, or correct host and port of the URL',
  ENOTFOUND: 'the name does not resolve: correct the host, or the DNS',
  EAI_AGAIN: 'the name does not resolve now: check the DNS',
  ECONNRESET: 'the peer closed the connection: check proxies, and whether the port expects TLS',
};

interface Place {
  readonly host: string;
  readonly port: number;
}

function placeOf({ hostname, port, protocol }: URL): Place {
  const host = hostname.replace(/^\[|\]$/g, '');
  return { host, port: Number(port) || (protocol === 'https:' ? 443 : 80) };
}

/** Whether a port accepts connections; with https, whether its certificate is valid. */
export async function checkConnection(target: string, nowMs: number): Promise<readonly Finding[]> {
  const url = new URL(target);
  const place = placeOf(url);
  const port = await checkPort(target, place);
  if (!port.ok || url.protocol !== 'https:') return [port];
  return [port, await checkCertificate(target, place, nowMs)];
}

async function checkPort(target: string, place: Place): Promise<Finding> {
  const check = { check: 'port', target } as const;
  const socket = connect(place);
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(timeoutMs) });
    return pass(check, `${place.host}:${place.port} accepts connections`);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    const isLate = code === 'ABORT_ERR';
    const remedy = portRemedies[code] ?? 'check routes, firewalls and network policies on the way';
    return fail(check, isLate ? 'no connection in time' : getRequestFailure(error), remedy);
  } finally {
    socket.destroy();
  }
}

async function checkCertificate(target: string, { host, port }: Place, nowMs: number): Promise<Finding> {
  const check = { check: 'tls', target } as const;
  // An invalid certificate is read, too, so that its names and its end are known. Nothing is sent.
  const servername = isIP(host) === 0 ? host : '';
  const socket = connectTls({ host, port, servername, rejectUnauthorized: false });
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(timeoutMs) });
    const certificate = socket.getPeerCertificate();
    const endMs = Date.parse(certificate.valid_to);
    const detail = `${describeNames(certificate)}, until ${new Date(endMs).toISOString()}`;
    if (endMs < nowMs) return fail(check, `expired: ${detail}`, 'renew the certificate');
    // Typed as an error; a code in fact.
    const code = socket.authorizationError === null ? '' : String(socket.authorizationError);
    if (code !== '') return fail(check, `${code}: ${detail}`, trustRemedy(code, host));
    if (endMs - nowMs < expiresSoonMs)
      return fail(check, detail, 'renew the certificate, and check what renews it automatically');
    return pass(check, detail);
  } catch (error) {
    return fail(
      check,
      getRequestFailure(error),
      'the port does not speak TLS: use http, or configure a certificate',
    );
  } finally {
    socket.destroy();
  }
}

function describeNames({ subjectaltname = '', subject }: PeerCertificate): string {
  return subjectaltname === '' ? `CN=${String(subject.CN)}` : subjectaltname;
}

function trustRemedy(code: string, host: string): string {
  return code === 'ERR_TLS_CERT_ALTNAME_INVALID'
    ? `issue a certificate for ${host}, or use a name of the certificate in the URL`
    : 'send the whole chain from the server, and set NODE_EXTRA_CA_CERTS to the file of a private CA';
}

/** A response of a service. */
export interface Page {
  readonly status: number;
  readonly text: string;
  readonly clock: Finding | undefined;
}

/**
 * Requests a page, and compares the clock of the server, by its header Date.
 *
 * @param token bearer token; empty: none
 * @throws as fetch
 */
export async function fetchPage(target: string, nowMs: () => number, token = ''): Promise<Page> {
  const startMs = nowMs();
  const response = await fetch(target, {
    signal: AbortSignal.timeout(timeoutMs),
    ...(token !== '' && { headers: { authorization: `Bearer ${token}` } }),
  });
  const text = await response.text();
  const date = Date.parse(response.headers.get('date') ?? '');
  const clock = Number.isNaN(date) ? undefined : compareClocks(target, date, { startMs, endMs: nowMs() });
  return { status: response.status, text, clock };
}

/** The header has whole seconds, and was written at any time of the request. */
function compareClocks(
  target: string,
  dateMs: number,
  { startMs, endMs }: { readonly startMs: number; readonly endMs: number },
): Finding {
  const check = { check: 'clock', target } as const;
  const behindMs = startMs - (dateMs + 999);
  const aheadMs = dateMs - endMs;
  const differenceMs = Math.max(behindMs, aheadMs, 0);
  if (differenceMs <= maxClockDifferenceMs) return pass(check, 'the same as here');
  const side = aheadMs > 0 ? 'ahead of' : 'behind';
  return fail(
    check,
    `${Math.round(differenceMs / 1000)} s ${side} this machine`,
    'synchronize both clocks (NTP): tokens expire too early or too late, and windows of limits differ',
  );
}
