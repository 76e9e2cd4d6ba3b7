import type { Access } from '../compile/access.ts';
import type { LimitDescriptor } from '../compile/limits.ts';
import { constantAttributes, ownIssuer } from '../decide/caller.ts';
import { type RouteRules, requestAttributes } from './route-rules.ts';

/**
 * Valid rules that may protect less than intended.
 *
 * @param hasClients whether the OAuth server issues tokens to machine clients
 */
export function routeRuleWarnings(rules: RouteRules, { hasClients = false } = {}): string[] {
  return [
    ...openDefaultWarnings(rules),
    ...unlimitedCallerWarnings(rules),
    ...sessionLimitWarnings(rules),
    ...clientLimitWarnings(rules, hasClients),
  ];
}

function openDefaultWarnings({ routes, policy }: RouteRules): string[] {
  const lines = routes.filter(({ access }) => access.type === 'Denied').map(({ position }) => position.line);
  if (policy.fallback.access.type !== 'Public' || lines.length === 0) return [];
  return [
    `default is public, so access: deny (line ${lines.join(', ')}) protects only these paths: the upstream may serve the same ` +
      'resource under another path, such as in another case. Use default: deny or authenticated, with public routes',
  ];
}

/** Descriptors of which a value is missing are not sent. */
function unlimitedCallerWarnings(rules: RouteRules): string[] {
  const places = findRules(rules, admitsUnlimited);
  if (places === '') return [];
  return [
    `callers without a user are not limited (${places}): all descriptors of limit need an identity. ` +
      'Add one without, such as [remote_address]',
  ];
}

function sessionLimitWarnings(rules: RouteRules): string[] {
  const places = findRules(rules, isBySession);
  if (places === '') return [];
  return [
    `users get a new limit with each sign-in, and tokens without a session are not limited (${places}): all ` +
      'descriptors of limit have session_id. Add one without, such as [user_id]',
  ];
}

/** Clients have no user. */
function clientLimitWarnings(rules: RouteRules, hasClients: boolean): string[] {
  const others = rules.issuers
    .filter(({ definition, kinds }) => definition.isKubernetes || kinds.client !== undefined)
    .map(({ definition }) => definition.name);
  const names = hasClients ? [ownIssuer, ...others] : others;
  const places = names.length === 0 ? '' : findRules(rules, isByUser);
  if (places === '') return [];
  return [
    `clients of the issuers ${names.join(', ')} are not limited (${places}): all descriptors of limit need a user. ` +
      'Add one without, such as [issuer, client_id]',
  ];
}

/** The lines of such rules, and `default`. */
function findRules(
  { routes, policy }: RouteRules,
  matches: (access: Access, limits: readonly LimitDescriptor[]) => boolean,
): string {
  const places = routes.flatMap(({ access, limits, position }) =>
    matches(access, limits) ? [`line ${position.line}`] : [],
  );
  const { access, limits } = policy.fallback;
  if (matches(access, limits)) places.push('default');
  return places.join(', ');
}

function isBySession({ type }: Access, limits: readonly LimitDescriptor[]): boolean {
  return type !== 'Denied' && limits.length > 0 && limits.every(({ keys }) => keys.includes('session_id'));
}

const ofUsers = ['user_id', 'session_id'];

function isByUser({ type }: Access, limits: readonly LimitDescriptor[]): boolean {
  if (type === 'Denied' || limits.length === 0) return false;
  return limits.every(({ keys }) => ofUsers.some((name) => keys.includes(name)));
}

const ofEveryRequest: ReadonlySet<string> = new Set(requestAttributes);
/** Attributes of every caller with a token. Roles count: no token is without one by default. */
const ofEveryCaller: ReadonlySet<string> = new Set([...constantAttributes, ...requestAttributes, 'role']);

function admitsUnlimited(access: Access, limits: readonly LimitDescriptor[]): boolean {
  if (limits.length === 0) return false;
  if (access.type === 'Public')
    return !limits.some(({ keys }) => keys.every((name) => ofEveryRequest.has(name)));
  if (access.type !== 'Authenticated') return false;
  // The public key of a web page is a token without a user.
  return access.anonymousUsers && !limits.some(({ keys }) => keys.every((name) => ofEveryCaller.has(name)));
}
