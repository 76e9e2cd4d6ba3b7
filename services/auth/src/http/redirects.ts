import type { FastifyRequest } from 'fastify';
import { findMismatch, type Glob, parseGlob } from '../config/glob.ts';
import type { Settings } from '../config/settings.ts';
import type { BaseContext } from '../context.ts';
import { shorten } from '../errors.ts';
import { pageUrl } from './page-url.ts';

/** Allowed redirect targets: the site, and URLs that match the allow list. */
export interface RedirectPolicy {
  readonly siteUrl: string;
  readonly globs: readonly Glob[];
  /** URL of the pages of this server, with a slash at the end; undefined if they are disabled. */
  readonly pagesUrl?: string | undefined;
}

/** A rule that was tried. Without `problem` it allows the target. */
interface RedirectRule {
  readonly source: 'SITE_URL' | 'LOOPBACK' | 'URI_ALLOW_LIST';
  readonly rule: string;
  readonly problem: string | undefined;
}

/** The rules are in the order in which they were tried, up to the one that allows the target. */
type RedirectCheck =
  | { readonly ok: true; readonly rules: readonly RedirectRule[] }
  | { readonly ok: false; readonly reason: string; readonly rules: readonly RedirectRule[] };

/** Longer URLs do not fit into emails, and take too long to match. */
const maxTargetChars = 2048;

// Rejects characters that browsers strip, or interpret differently.
const printable = /^[!-~]+$/;
const ambiguous = /[\\<>"^`{|}]/;
const urlForm = /^([a-z][a-z0-9+.-]*):(?:\/\/([^/?#]*))?/i;
const authorityForm = /^(\[[0-9a-f:.]+\]|[^:[\]]*)(?::(\d{1,5}))?$/i;
const hostForm = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/i;

/** Schemes that execute or display the URL itself. */
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

/** Throws if an entry is not a glob, which the settings rule out. */
export function createRedirectPolicy(siteUrl: string, allowList: readonly string[]): RedirectPolicy {
  const globs = allowList.map((entry) => {
    const glob = parseGlob(entry);
    if (glob === undefined) throw new TypeError(`not a glob: ${entry}`);
    return glob;
  });
  return { siteUrl, globs };
}

/**
 * Checks a URL as it was sent: the text itself is matched, and sent in the response, not a parsed
 * form. URLs that parsers may read differently are rejected.
 */
export function checkRedirect(target: string, { siteUrl, globs, pagesUrl }: RedirectPolicy): RedirectCheck {
  if (target.length > maxTargetChars) return reject(`longer than ${maxTargetChars} characters`);
  if (!printable.test(target) || ambiguous.test(target))
    return reject('it has characters that are invalid in URLs');
  const parts = parseUrl(target);
  if (parts === undefined) return reject('it is not an absolute URL');
  if (forbiddenSchemes.includes(parts.scheme)) return reject('its scheme is never allowed');
  const site = { source: 'SITE_URL', rule: siteUrl, problem: findSiteProblem(parts, siteUrl) } as const;
  if (site.problem === undefined || isOwnPage(target, pagesUrl)) return { ok: true, rules: [site] };
  if (isLoopbackApp(parts)) return { ok: true, rules: [site, loopbackRule] };
  const problem = findHostProblem(parts);
  if (problem !== undefined) return { ok: false, reason: problem, rules: [site] };
  const [beforeFragment = ''] = target.split('#', 1);
  const rules: RedirectRule[] = [site];
  for (const glob of globs) {
    const mismatch = describeMismatch(glob, beforeFragment);
    rules.push({ source: 'URI_ALLOW_LIST', rule: glob.source, problem: mismatch });
    if (mismatch === undefined) return { ok: true, rules };
  }
  return { ok: false, reason: 'it matches neither SITE_URL nor SVC_URI_ALLOW_LIST', rules };
}

function isOwnPage(target: string, pagesUrl: string | undefined): boolean {
  return pagesUrl !== undefined && URL.parse(target)?.href.startsWith(pagesUrl) === true;
}

function describeMismatch(glob: Glob, target: string): string | undefined {
  const at = findMismatch(glob, target);
  if (at === undefined) return undefined;
  if (at === target.length) return 'the URL ends where the rule requires more characters';
  const rest = JSON.stringify(shorten(target.slice(at)));
  const isSeparator = '/.'.includes(target.charAt(at));
  const hint = isSeparator && /(?<!\*)\*(?!\*)|\?/.test(glob.source);
  return `no match from character ${at + 1} on: ${rest}${hint ? ' (* and ? do not match "." and "/", ** does)' : ''}`;
}

interface UrlParts {
  readonly scheme: string;
  /** The host in lower case; undefined for a URL without authority, such as `com.example:/path`. */
  readonly host: string | undefined;
  /** The default port of the scheme if the URL has none; empty if the scheme has none. */
  readonly port: string;
}

function parseUrl(url: string): UrlParts | undefined {
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

/** Same origin. https is also allowed for an http site, and any port for a loopback site. */
function findSiteProblem(target: UrlParts, siteUrl: string): string | undefined {
  const site = parseUrl(siteUrl);
  if (site?.host === undefined || target.host !== site.host) return 'the host differs';
  const isUpgrade = site.scheme === 'http' && target.scheme === 'https';
  if (target.scheme !== site.scheme && !isUpgrade) return 'the scheme differs';
  if (isLoopback(site.host)) return undefined;
  const bothDefault = target.port === defaultPorts[target.scheme] && site.port === defaultPorts[site.scheme];
  const isSamePort = target.scheme === site.scheme && target.port === site.port;
  return bothDefault || isSamePort ? undefined : 'the port differs';
}

const loopbackRule = {
  source: 'LOOPBACK',
  rule: 'http://127.0.0.1:*, http://[::1]:*',
  problem: undefined,
} as const;

/**
 * Native apps listen on any port of a loopback address. `localhost` may be resolved to another
 * address.
 *
 * @see RFC 8252 §7.3 https://www.rfc-editor.org/rfc/rfc8252#section-7.3
 */
function isLoopbackApp({ scheme, host }: UrlParts): boolean {
  const isWeb = scheme === 'http' || scheme === 'https';
  return isWeb && host !== 'localhost' && isLoopback(host);
}

/** Only loopback addresses are allowed, in their plain form. */
function findHostProblem({ scheme, host }: UrlParts): string | undefined {
  if (host === undefined || host === '') return undefined;
  if (isAddress(host))
    return isLoopback(host) ? undefined : 'its host is an IP address, or may be read as one';
  const isWeb = scheme === 'http' || scheme === 'https';
  return isWeb && !hostForm.test(host) ? 'its host is not a name' : undefined;
}

/**
 * Browsers parse a host as an address if its last label is a number.
 *
 * @see https://url.spec.whatwg.org/#ends-in-a-number-checker
 */
function isAddress(host: string): boolean {
  if (host.startsWith('[')) return true;
  const labels = host.replace(/\.$/, '').split('.');
  return /^(?:\d+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? '');
}

function isLoopback(host: string | undefined): boolean {
  if (host === undefined) return false;
  if (host === 'localhost' || isLoopbackIpv4(host)) return true;
  // The URL parser normalizes all notations of `::1` to this one.
  return host.startsWith('[') && URL.parse(`http://${host}`)?.hostname === '[::1]';
}

function isLoopbackIpv4(host: string): boolean {
  return /^127(?:\.(?:0|[1-9]\d{0,2})){3}$/.test(host) && URL.parse(`http://${host}`)?.hostname === host;
}

function reject(reason: string): RedirectCheck {
  return { ok: false, reason, rules: [] };
}

/** Explains the decision of `redirectTarget` on a `redirect_to`. */
export function explainRedirect(target: string, { settings }: BaseContext) {
  const check = checkRedirect(target, getPolicy(settings));
  const rules = check.rules.map(({ source, rule, problem }) => ({
    source,
    rule,
    matches: problem === undefined,
    ...(problem !== undefined && { reason: problem }),
  }));
  return {
    to: target,
    allowed: check.ok,
    redirects_to: check.ok ? target : settings.siteUrl,
    ...(!check.ok && { reason: check.reason }),
    rules,
  };
}

/** Globs are parsed once per settings. */
const policies = new WeakMap<Settings, RedirectPolicy>();

/**
 * The final redirect target: `redirect_to` of header, query or body, or else the referer, if it is
 * allowed; SITE_URL otherwise. The target is not modified.
 */
export function redirectTarget(
  request: FastifyRequest,
  body: { readonly redirect_to?: string | undefined } | undefined,
  context: BaseContext,
): string {
  const { settings } = context;
  const requested = requestedTarget(request, body);
  const allowed = requested === '' ? undefined : allowedTarget(requested, request, context);
  if (allowed !== undefined) return allowed;
  const { referer = '' } = request.headers;
  return referer !== '' && checkRedirect(referer, getPolicy(settings)).ok ? referer : settings.siteUrl;
}

/** The target if it is allowed. Logs why it is not. */
export function allowedTarget(
  target: string,
  request: Pick<FastifyRequest, 'id'>,
  { settings, logger }: BaseContext,
): string | undefined {
  const check = checkRedirect(target, getPolicy(settings));
  if (check.ok) return target;
  logger.info({ request_id: request.id, reason: check.reason }, 'rejected redirect_to, using the default');
  return undefined;
}

function requestedTarget(
  request: FastifyRequest,
  body: { readonly redirect_to?: string | undefined } | undefined,
): string {
  const { redirect_to: header } = request.headers;
  if (typeof header === 'string' && header !== '') return header;
  // Parsed boundary: the query is an object; a repeated parameter is a list, which is ignored.
  const { redirect_to: query } = request.query as { readonly redirect_to?: unknown };
  if (typeof query === 'string' && query !== '') return query;
  return body?.redirect_to ?? '';
}

/** Whether a URL is of the site, or in the allow list. */
export function isAllowedRedirect(target: string, settings: Settings): boolean {
  return checkRedirect(target, getPolicy(settings)).ok;
}

/** Whether a target is at a loopback address, where any program can listen, and not of the site. */
export function isProgramOfDevice(target: string, settings: Settings): boolean {
  const { siteUrl, pagesUrl } = getPolicy(settings);
  const parts = parseUrl(target);
  if (parts === undefined || !isLoopback(parts.host) || findSiteProblem(parts, siteUrl) === undefined)
    return false;
  return !isOwnPage(target, pagesUrl);
}

function getPolicy(settings: Settings): RedirectPolicy {
  const known = policies.get(settings);
  if (known !== undefined) return known;
  const policy = {
    ...createRedirectPolicy(settings.siteUrl, settings.uriAllowList),
    pagesUrl: settings.pagesEnabled ? pageUrl(settings, '') : undefined,
  };
  policies.set(settings, policy);
  return policy;
}

/** Sent in the order of the names. */
type RedirectParameters = Readonly<Record<string, string>>;

/**
 * Adds parameters to a target, which is not modified otherwise: its fragment, such as the route of
 * a hash router, stays before the parameters of a session. `fragment` replaces it, for errors.
 */
export function redirectUrl(
  target: string,
  {
    query = {},
    session = {},
    fragment = {},
  }: {
    readonly query?: RedirectParameters;
    readonly session?: RedirectParameters;
    readonly fragment?: RedirectParameters;
  },
): string {
  const fragmentAt = target.indexOf('#');
  const base = fragmentAt < 0 ? target : target.slice(0, fragmentAt);
  const replacement = prefixed('#', encode(fragment));
  const ownFragment = fragmentAt < 0 ? '' : target.slice(fragmentAt);
  const end = replacement === '' ? `${ownFragment}${prefixed('#', encode(session))}` : replacement;
  return `${withPath(base)}${prefixed(base.includes('?') ? '&' : '?', encode(query))}${end}`;
}

function prefixed(separator: string, text: string): string {
  return text === '' ? '' : `${separator}${text}`;
}

/** Adds the path `/` to an origin, as browsers do. */
function withPath(base: string): string {
  return /^https?:\/\/[^/?]+$/.test(base) ? `${base}/` : base;
}

function encode(parameters: RedirectParameters): string {
  const encoded = new URLSearchParams(parameters);
  encoded.sort();
  return encoded.toString();
}
