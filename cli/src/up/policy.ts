import { compilePolicy } from '@tollgate/policies/compile/compile';
import { policyApiVersion, policyKind } from '@tollgate/policies/definition/resource-shape';
import { readPolicy } from '@tollgate/policies/read/read-policy';
import type { RuleProblem } from '@tollgate/rules/problem';

/** Access, routes and limits as they are written. */
export interface PolicyFields {
  readonly access?: unknown;
  readonly routes?: unknown;
  readonly limits?: unknown;
}

/** A problem, and the JSON path of its field. */
export interface FieldProblem {
  readonly path: string;
  readonly message: string;
}

/** The path that Envoy forwards to the auth server. */
export const authPath = '/auth';

interface PolicyCheck {
  /** Undefined when there are problems. */
  readonly fields: PolicyFields | undefined;
  readonly problems: readonly FieldProblem[];
  readonly warnings: readonly FieldProblem[];
}

/** Checks access, routes and limits with the compiler of AccessPolicies. */
export function checkPolicy(fields: PolicyFields): PolicyCheck {
  const problems = checkRoutes(fields.routes);
  const invalid = (more: readonly FieldProblem[] = []) => ({
    ...{ fields: undefined, problems: [...problems, ...more], warnings: [] },
  });
  if (problems.length > 0) return invalid();
  const read = readPolicy(toPolicy(fields, { name: 'up', namespace: 'local', hosts: ['*'] }), 'up');
  if (!read.ok) return invalid(read.problems.map(toFieldProblem));
  const compiled = compilePolicy(read.resource);
  if (!compiled.ok) return invalid(compiled.problems.map(toFieldProblem));
  return { fields, problems, warnings: compiled.warnings.map(toFieldProblem) };
}

/** Checks the fields that a rule of an AccessPolicy does not have. */
function checkRoutes(routes: unknown): readonly FieldProblem[] {
  if (routes === undefined) return [];
  if (!Array.isArray(routes))
    return [{ path: 'routes', message: 'routes must be a list: - { path: /admin, access: Denied }' }];
  return routes.flatMap((route: unknown, index) => {
    const path = `routes[${index}]`;
    const value = typeof route === 'object' && route !== null && 'path' in route ? route.path : undefined;
    if (typeof value !== 'string')
      return [{ path, message: `${path} needs a path: - { path: /admin, access: Denied }` }];
    if (value === authPath || value.startsWith(`${authPath}/`))
      return [
        { path: `${path}.path`, message: `${authPath} is forwarded to the auth server: use another path` },
      ];
    return [];
  });
}

interface PolicyPlace {
  readonly name: string;
  readonly namespace: string;
  readonly hosts: readonly string[];
}

/** The AccessPolicy with these fields. */
export function toPolicy({ access, routes, limits }: PolicyFields, { name, namespace, hosts }: PolicyPlace) {
  return {
    apiVersion: policyApiVersion,
    kind: policyKind,
    metadata: { name, namespace },
    spec: {
      hosts,
      ...(access !== undefined && { access: toAccess(access) }),
      ...(Array.isArray(routes) && routes.length > 0 && { rules: routes.map(toRule) }),
      ...(limits !== undefined && { limits }),
    },
  };
}

/** A word is the type of access. */
function toAccess(access: unknown): unknown {
  return typeof access === 'string' ? { type: access } : access;
}

/** A rule with one match, whose path is a prefix. */
function toRule(route: Readonly<Record<string, unknown>>): object {
  const { path: value, methods, access, ...others } = route;
  return {
    matches: [{ path: { value }, ...(methods !== undefined && { methods }) }],
    ...(access !== undefined && { access: toAccess(access) }),
    ...others,
  };
}

/** Paths of an AccessPolicy, and what they are called in the file. */
const renamed: readonly (readonly [RegExp, string])[] = [
  [/^spec\./, ''],
  [/^rules\b/, 'routes'],
  [/^(routes\[\d+\])\.matches\[\d+\]\.path\.value/, '$1.path'],
  [/^(routes\[\d+\])\.matches\[\d+\]/, '$1'],
  [/^((?:routes\[\d+\]\.)?access)\.type$/, '$1'],
];

function toFieldProblem({ field = '', message, hint }: RuleProblem): FieldProblem {
  const path = renamed.reduce((text, [from, to]) => text.replace(from, to), field);
  return { path, message: `${path}: ${message}${hint === undefined ? '' : ` (${hint})`}` };
}
