import type { FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import { type Glob, matchesGlob, parseGlob } from './glob.ts';

/** Where users may be sent: the site itself, and what the list has. */
export interface RedirectPolicy {
  readonly siteUrl: string;
  readonly globs: readonly Glob[];
}

/** May somebody be sent there? If not, why, for the log. */
export type RedirectVerdict = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** Longer ones fit into no mail, and would take too long to match. */
const maxTargetChars = 2048;

// What browsers strip, take for something else, or decode into something else never gets to the parts below.
const printable = /^[!-~]+$/;
const misread = /[\\<>"^`{|}]/;
const urlForm = /^([a-z][a-z0-9+.-]*):(?:\/\/([^/?#]*))?/i;
const authorityForm = /^(\[[0-9a-f:.]+\]|[^:[\]]*)(?::(\d{1,5}))?$/i;
const hostForm = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/i;

/** Schemes that run or show what the URL itself holds. */
const forbiddenSchemes = [
  'javascript',
  'data',
  'vbscript',
  'file',
  'blob',
  'about',
  'view-source',
  'filesystem',
];

/** Makes the policy. Throws when an entry is no glob; settings have been checked for that. */
export function redirectPolicy(siteUrl: string, allowList: readonly string[]): RedirectPolicy {
  const globs = allowList.map((entry) => {
    const glob = parseGlob(entry);
    if (glob === undefined) throw new TypeError(`no glob: ${entry}`);
    return glob;
  });
  return { siteUrl, globs };
}

/**
 * Looks at a URL as it was sent: it is the text itself that is matched and later answered, not what a parser makes of it.
 * Whatever two parsers might read in two ways is refused first.
 */
export function checkRedirect(target: string, { siteUrl, globs }: RedirectPolicy): RedirectVerdict {
  if (target.length > maxTargetChars) return refuse(`longer than ${maxTargetChars} characters`);
  if (!printable.test(target) || misread.test(target))
    return refuse('it has characters that URLs do not have');
  const parts = partsOf(target);
  if (parts === undefined) return refuse('it is no absolute URL');
  if (forbiddenSchemes.includes(parts.scheme)) return refuse('its scheme is never allowed');
  const site = partsOf(siteUrl);
  if (site !== undefined && isSameSite(parts, site)) return { ok: true };
  const problem = hostProblem(parts);
  if (problem !== undefined) return refuse(problem);
  const [beforeFragment = ''] = target.split('#', 1);
  return globs.some((glob) => matchesGlob(glob, beforeFragment))
    ? { ok: true }
    : refuse('it is neither of the site nor matched by SVC_URI_ALLOW_LIST');
}

interface UrlParts {
  readonly scheme: string;
  /** In lower case; undefined for a URL without authority, such as `com.example:/path`. */
  readonly host: string | undefined;
  /** Of the scheme when the URL names none; empty where the scheme has none. */
  readonly port: string;
}

function partsOf(url: string): UrlParts | undefined {
  const [, scheme = '', authority] = urlForm.exec(url) ?? [];
  if (scheme === '') return undefined;
  const known = { scheme: scheme.toLowerCase() };
  const isWeb = known.scheme === 'http' || known.scheme === 'https';
  if (authority === undefined) return isWeb ? undefined : { ...known, host: undefined, port: '' };
  const [, host, port] = authorityForm.exec(authority) ?? [];
  if (host === undefined || (isWeb && host === '') || host.includes('@')) return undefined;
  if (isWeb && !URL.canParse(url)) return undefined;
  return { ...known, host: host.toLowerCase(), port: port ?? defaultPorts[known.scheme] ?? '' };
}

const defaultPorts: Readonly<Record<string, string>> = { http: '80', https: '443' };

/** Of the same origin; also by https where the site has http, and on any port where it is on this machine. */
function isSameSite(target: UrlParts, site: UrlParts): boolean {
  if (target.host !== site.host || target.host === undefined) return false;
  const isUpgrade = site.scheme === 'http' && target.scheme === 'https';
  if (target.scheme !== site.scheme && !isUpgrade) return false;
  if (isLoopback(site.host)) return true;
  const bothDefault = target.port === defaultPorts[target.scheme] && site.port === defaultPorts[site.scheme];
  return bothDefault || (target.scheme === site.scheme && target.port === site.port);
}

/** Addresses are allowed on this machine only, and in their plain form. */
function hostProblem({ scheme, host }: UrlParts): string | undefined {
  if (host === undefined || host === '') return undefined;
  if (isAddress(host)) return isLoopback(host) ? undefined : 'its host is an address, or is read as one';
  const isWeb = scheme === 'http' || scheme === 'https';
  return isWeb && !hostForm.test(host) ? 'its host is no name' : undefined;
}

/** What browsers read as an address: the last label is a number. @see https://url.spec.whatwg.org/#ends-in-a-number-checker */
function isAddress(host: string): boolean {
  if (host.startsWith('[')) return true;
  const labels = host.replace(/\.$/, '').split('.');
  return /^(?:\d+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? '');
}

function isLoopback(host: string | undefined): boolean {
  if (host === undefined) return false;
  if (host === 'localhost' || isLoopbackIpv4(host)) return true;
  // The one notation of `::1` that the parser of URLs answers, whatever it was given.
  return host.startsWith('[') && URL.parse(`http://${host}`)?.hostname === '[::1]';
}

function isLoopbackIpv4(host: string): boolean {
  return /^127(?:\.(?:0|[1-9]\d{0,2})){3}$/.test(host) && URL.parse(`http://${host}`)?.hostname === host;
}

function refuse(reason: string): RedirectVerdict {
  return { ok: false, reason };
}

/** Policies by the settings they are made from: globs are read once. */
const policies = new WeakMap<Context['settings'], RedirectPolicy>();

/**
 * Where the user is to be sent in the end: what the header or the query or the body calls `redirect_to`, else the page that sent the
 * request, if that is allowed; SITE_URL otherwise. Answered as it was sent, never changed.
 */
export function redirectTarget(
  request: FastifyRequest,
  body: { readonly redirect_to?: string | undefined } | undefined,
  { settings, logger }: Context,
): string {
  const policy = policyOf(settings);
  const wanted = wantedTarget(request, body);
  for (const target of [wanted, request.headers.referer ?? '']) {
    if (target === '') continue;
    const verdict = checkRedirect(target, policy);
    if (verdict.ok) return target;
    if (target === wanted)
      logger.info(
        { request_id: request.id, reason: verdict.reason },
        'redirect_to refused, SITE_URL instead',
      );
  }
  return settings.siteUrl;
}

function wantedTarget(
  request: FastifyRequest,
  body: { readonly redirect_to?: string | undefined } | undefined,
): string {
  const { redirect_to: header } = request.headers;
  if (typeof header === 'string' && header !== '') return header;
  // Parsed boundary: the query is an object; a name that comes twice is a list, and that is no target.
  const { redirect_to: query } = request.query as { readonly redirect_to?: unknown };
  if (typeof query === 'string' && query !== '') return query;
  return body?.redirect_to ?? '';
}

function policyOf(settings: Context['settings']): RedirectPolicy {
  const known = policies.get(settings);
  if (known !== undefined) return known;
  const policy = redirectPolicy(settings.siteUrl, settings.uriAllowList);
  policies.set(settings, policy);
  return policy;
}

/** What a redirect carries; sent in the order of the names. */
export type RedirectParameters = Readonly<Record<string, string>>;

/** Where a redirect goes with parameters in its query, its fragment, or both. The target stays as it was typed. */
export function redirectUrl(
  target: string,
  {
    query = {},
    fragment = {},
  }: { readonly query?: RedirectParameters; readonly fragment?: RedirectParameters },
): string {
  const [base = ''] = target.split('#', 1);
  const search = encode(query);
  const separator = base.includes('?') ? '&' : '?';
  const hash = encode(fragment);
  return `${withPath(base)}${search === '' ? '' : separator + search}${hash === '' ? '' : `#${hash}`}`;
}

/** A site without a path has the path `/`: browsers would put it there. */
function withPath(base: string): string {
  return /^https?:\/\/[^/?]+$/.test(base) ? `${base}/` : base;
}

function encode(parameters: RedirectParameters): string {
  const encoded = new URLSearchParams(parameters);
  encoded.sort();
  return encoded.toString();
}
