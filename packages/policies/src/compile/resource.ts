import type { AccessSpec, PolicySpec } from '../definition/spec.ts';

/** A resource for which OAuth clients get tokens. @see RFC 9728 §2 */
export interface ProtectedResource {
  /** Its identifier: the audience of its tokens. */
  readonly url: string;
  readonly name: string | undefined;
  readonly scopes: readonly string[] | undefined;
  /** Path of the metadata document, and where clients find it. */
  readonly metadataPath: string;
  readonly metadataUrl: string;
}

type Report = (field: string, message: string) => void;

type ResourceSpec = NonNullable<AccessSpec['resource']>;

const wellKnown = '/.well-known/oauth-protected-resource';

/**
 * Compiles a `resource`; undefined after a report. Its URL is never taken from a request: a client
 * that chooses the host of a request would choose the audience of the tokens that are accepted.
 */
export function compileResource(
  { url, name, scopes }: ResourceSpec,
  { hosts = [] }: Pick<PolicySpec, 'hosts'>,
  report: Report,
): ProtectedResource | undefined {
  const [host] = hosts;
  if (url === undefined && (host === undefined || hosts.length > 1 || host.startsWith('*'))) {
    report('resource.url', 'is required unless hosts is a single host without *');
    return undefined;
  }
  const text = url ?? `https://${host}`;
  const problem = findUrlProblem(text);
  if (problem !== undefined) {
    report('resource.url', problem);
    return undefined;
  }
  const { origin, pathname } = new URL(text);
  // RFC 9728 §3.1: a slash that ends the host is removed before the suffix is inserted.
  const metadataPath = `${wellKnown}${pathname === '/' ? '' : pathname}`;
  return { url: text, name, scopes, metadataPath, metadataUrl: `${origin}${metadataPath}` };
}

function findUrlProblem(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) return 'must be an https or http URL';
  if (text.includes('?') || text.includes('#')) return 'must not have a query or a fragment';
  // Clients compare identifiers character by character.
  const normal = url.pathname === '/' && !text.endsWith('/') ? url.origin : url.href;
  return normal === text ? undefined : `must be in its normal form: ${normal}`;
}

/** The audiences of its tokens: clients that parse a URL add the slash of an empty path. */
export function resourceAudiences({ url }: ProtectedResource): readonly string[] {
  const { origin, pathname } = new URL(url);
  return pathname === '/' ? [origin, `${origin}/`] : [url];
}

/** Whether a path is that of a metadata document, which is looked up by the whole path then. */
export function isMetadataPath(path: string): boolean {
  return path.startsWith(wellKnown);
}
