import { getRequestFailure } from '@tollgate/kit/errors';
import { withoutSlash } from '../connection/inputs.ts';
import { fetchPage } from './endpoint.ts';
import { type Finding, fail, pass } from './finding.ts';

/** Where each service says its version. */
const pages = {
  auth: { path: '/health', pattern: /"version":\s*"v?([^"]+)"/ },
  ratelimit: { path: '/v1/settings', pattern: /"version":\s*"v?([^"]+)"/ },
  xds: { path: '/v1/status', pattern: /"release":\s*"v?([^"]+)"/ },
  console: { path: '/metrics', pattern: /^tollgate_build_info\{version="v?([^"]+)"\}/m },
} as const;

/** Options of checks of services. */
export interface ServiceCheckOptions {
  readonly nowMs: () => number;
  /** Version of this command. */
  readonly version: string;
  /** Credential of the admin API. */
  readonly token?: string | (() => Promise<string>);
}

/** Compares the version of a service with that of this command. */
export async function checkVersion(
  kind: keyof typeof pages,
  target: string,
  { nowMs, version, token = '' }: ServiceCheckOptions,
): Promise<Finding> {
  const check = { check: 'version', target } as const;
  const { path, pattern } = pages[kind];
  try {
    const credential = typeof token === 'string' ? token : await token();
    const { status, text } = await fetchPage(withoutSlash(target) + path, nowMs, credential);
    const [, found] = pattern.exec(text) ?? [];
    if (status === 401 || status === 403)
      return pass(check, `not known: the credential may not read ${path}`);
    if (found === undefined)
      return fail(
        check,
        `unknown: ${status} for ${path}`,
        'correct the URL, or install the version of this command',
      );
    const finding =
      found === version
        ? pass(check, found)
        : fail(check, `${found}, and tollgate is ${version}`, 'install the same version of all parts');
    return { ...finding, version: found };
  } catch (error) {
    return fail(check, getRequestFailure(error), 'correct the problem of the connection first');
  }
}

/** Compares the versions of all services with each other, where two or more are known. */
export function compareVersions(findings: readonly Finding[]): readonly Finding[] {
  const known = findings.flatMap(({ target, version }) =>
    version === undefined ? [] : [{ target, version }],
  );
  if (known.length < 2) return [];
  const check = { check: 'version', target: 'all services' } as const;
  const versions = [...new Set(known.map(({ version }) => version))].sort();
  const [only = ''] = versions;
  if (versions.length === 1) return [pass(check, `${only} on ${known.length} servers`)];
  const groups = versions.map(
    (version) =>
      `${version}: ${known.flatMap((one) => (one.version === version ? [one.target] : [])).join(' ')}`,
  );
  return [
    fail(check, groups.join('; '), 'complete the roll-out, or roll back: releases are tested as a whole'),
  ];
}
