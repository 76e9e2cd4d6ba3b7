import { policyDomainPrefix } from '@tollgate/rules/rule-document';
import type { CatalogObject, DomainClaim } from './validation.ts';

/** Domains of access policies, which no object may claim. */
export const isReserved = (domain: string): boolean => domain.startsWith(policyDomainPrefix);

/** Which namespaces may claim which domains: their own name, and below it. */
export class DomainClaims {
  readonly #anyDomainNamespaces: ReadonlySet<string>;

  /** Namespaces that may claim any domain, `*` for all. */
  constructor(anyDomainNamespaces: Iterable<string>) {
    this.#anyDomainNamespaces = new Set(anyDomainNamespaces);
  }

  /** An object without a valid version claims nothing. */
  find(namespace: string, domain: string | undefined, isTolerated: boolean): DomainClaim {
    if (domain !== undefined && this.isAllowed(namespace, domain)) return 'allowed';
    return isTolerated && !(domain !== undefined && isReserved(domain)) ? 'tolerated' : 'refused';
  }

  isAllowed(namespace: string, domain: string): boolean {
    if (isReserved(domain)) return false;
    const names = this.#anyDomainNamespaces;
    return (
      names.has('*') || names.has(namespace) || domain === namespace || domain.startsWith(`${namespace}/`)
    );
  }
}

/** Objects that count for their domain; a namespace that may claim it comes before others. */
export function selectClaims(objects: readonly CatalogObject[]): readonly CatalogObject[] {
  const claims = objects.filter(({ claim }) => claim !== 'refused');
  const isAllowed = ({ claim }: CatalogObject) => claim === 'allowed';
  if (claims.every(isAllowed) || !claims.some(isAllowed)) return claims;
  return [...claims.filter(isAllowed), ...claims.filter((object) => !isAllowed(object))];
}

/** Whether the rules of an object were in force before, here or as its status says. */
export const wasInForce = (before: CatalogObject | undefined, manifest: unknown): boolean =>
  before === undefined ? hasRulesInForce(manifest) : before.claim !== 'refused';

/**
 * The xDS server has written that rules of the object are in force, or on trial, or left out only
 * because of other objects.
 */
function hasRulesInForce(manifest: unknown): boolean {
  const status = getField(manifest, 'status');
  const rules = getField(status, 'rules');
  if (typeof rules === 'number' && rules > 0) return true;
  const conditions = getField(status, 'conditions');
  const accepted = Array.isArray(conditions)
    ? conditions.find((condition) => getField(condition, 'type') === 'Accepted')
    : undefined;
  const reason = getField(accepted, 'reason');
  return reason === 'DomainConflict' || reason === 'DuplicateKey';
}

/** Characters of a namespace. */
const maxNamespace = 63;

/** `status.domainOwner` of a manifest. */
export function readDomainOwner(manifest: unknown): string | undefined {
  const owner = getField(getField(manifest, 'status'), 'domainOwner');
  return typeof owner === 'string' && owner !== '' && owner.length <= maxNamespace ? owner : undefined;
}

function getField(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}
