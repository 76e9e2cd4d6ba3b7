import { specFields } from '@tollgate/policies/definition/fields';

/** Annotation of a Namespace. */
export const allowedHostsAnnotation = 'policy.tollgate.dev/allowed-hosts';

/** Finds the hosts that policies of a namespace may have; undefined for all. */
export type AllowedHosts = (namespace: string) => readonly string[] | undefined;

type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  /** The first text that is no host. */
  | { readonly ok: false; readonly invalid: string };

/**
 * Reads the hosts that access policies of a Namespace may have from its annotation: hosts,
 * wildcards, or `*`, separated by commas or white space. None without the annotation. Texts that
 * are no hosts are `invalid` and allow nothing.
 */
export function readAllowedHosts(namespace: {
  readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> };
}): { readonly hosts: readonly string[]; readonly invalid: readonly string[] } {
  const text = namespace.metadata?.annotations?.[allowedHostsAnnotation] ?? '';
  const texts = text.split(/[\s,]+/).filter((part) => part !== '');
  return { hosts: texts.filter(isHost), invalid: texts.filter((part) => !isHost(part)) };
}

/**
 * Parses hosts by namespace: `shop=api.example.com`, then `*.shop.example.com` for the same
 * namespace, then `web=www.example.com`.
 */
export function parseHostsByNamespace(
  entries: readonly string[],
): Parsed<ReadonlyMap<string, readonly string[]>> {
  const byNamespace = new Map<string, string[]>();
  let namespace: string | undefined;
  for (const entry of entries) {
    const [first = '', second, ...more] = entry.split('=').map((part) => part.trim());
    const host = more.length > 0 ? entry : (second ?? first);
    if (second !== undefined) namespace = first;
    if (namespace === undefined || !namespaceForm.test(namespace) || !isHost(host))
      return { ok: false, invalid: entry };
    const hosts = byNamespace.get(namespace);
    if (hosts === undefined) byNamespace.set(namespace, [host]);
    else hosts.push(host);
  }
  return { ok: true, value: byNamespace };
}

/** Whether every host that `host` stands for is allowed: `*.a.test` covers `*.b.a.test`. */
export function isHostAllowed(host: string, allowed: readonly string[]): boolean {
  return allowed.some((pattern) => {
    if (pattern === '*' || pattern === host) return true;
    // One without the wildcard is no subdomain: `*.example.com` does not cover `example.com`.
    return pattern.startsWith('*.') && host.endsWith(pattern.slice(1));
  });
}

const namespaceForm = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;

function isHost(text: string): boolean {
  const { pattern, max } = specFields.hosts.bounds;
  return text.length <= max && pattern?.test(text) === true;
}
