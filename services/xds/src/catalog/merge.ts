import { domainOptions } from '@tollgate/rules/fields';
import {
  type DescriptorSpec,
  type DomainOptions,
  type DomainRules,
  getField,
  type RuleDocument,
  setField,
} from '@tollgate/rules/rule-document';
import { resourceSpelling } from '@tollgate/rules/spelling';
import type { DomainOwner } from './domain-owners.ts';
import type { CatalogObject } from './validation.ts';

/** A top-level rule, or a setting of the domain, that an older object has already. */
export interface DuplicateRule {
  /** `key` or `key_value`, as limiters identify it; or the name of the setting. */
  readonly composite: string;
  /** JSON path of the younger one. */
  readonly field: string;
  readonly older: CatalogObject;
}

/** Part of a domain that comes from an object. */
export type MergeResult =
  | {
      readonly type: 'merged';
      /** Limits in force, or on trial, without duplicates. */
      readonly rules: number;
      readonly duplicates: readonly DuplicateRule[];
    }
  /** The domain belongs to the namespace of another object. */
  | { readonly type: 'conflict'; readonly winner: CatalogObject }
  /** The domain is reserved for a namespace without objects. */
  | { readonly type: 'reserved'; readonly namespace: string; readonly untilMs: number }
  /** The domain does not belong to the namespace of the object. */
  | { readonly type: 'refused' };

/** The rules of a domain, and what became of each of its objects. */
interface MergedDomain {
  readonly document: RuleDocument;
  /** Limits in force. */
  readonly rules: number;
  readonly results: ReadonlyMap<CatalogObject, MergeResult>;
}

/**
 * Merges the objects of a domain, which are sorted by age. The result depends only on them and the
 * owner.
 *
 * Objects of other namespaces are in conflict until the owner gives up the domain. The objects of
 * the owner are merged, older ones first, which matters to wildcards. Of a younger object only
 * those top-level rules are left out that an older one has: leaving out the whole object would lift
 * other limits, and keeping its previous version would depend on what this replica has seen.
 * Objects on trial are merged with each other only.
 */
export function mergeDomain(
  domain: string,
  objects: readonly CatalogObject[],
  owner: DomainOwner,
): MergedDomain {
  const winner = objects.find(({ namespace }) => owner.type === 'owned' && namespace === owner.namespace);
  const inForce: Merge = { taken: new Map(), descriptors: [], settings: new Map() };
  const onTrial: Merge = { taken: new Map(), descriptors: [], settings: new Map() };
  const results = new Map<CatalogObject, MergeResult>();
  let rules = 0;
  for (const object of objects) {
    if (owner.type === 'reserved') {
      results.set(object, owner);
      continue;
    }
    if (winner === undefined || object.namespace !== winner.namespace) {
      results.set(object, { type: 'conflict', winner: winner ?? object });
      continue;
    }
    const isOnTrial = object.valid?.isOnTrial === true;
    const result = mergeObject(isOnTrial ? onTrial : inForce, object);
    if (!isOnTrial) rules += result.rules;
    results.set(object, result);
  }
  const trial = onTrial.descriptors.length === 0 ? undefined : toRules(onTrial);
  const source = domain;
  const document = { source, spelling: resourceSpelling, domain, ...toRules(inForce), trial };
  return { document, rules, results };
}

const toRules = ({ descriptors, settings }: Merge): DomainRules => {
  const options: DomainOptions = {};
  for (const field of domainOptions) setField(options, field, settings.get(field.name)?.value);
  return { ...options, descriptors };
};

interface Merge {
  /** The object that has a top-level rule, by composite. */
  readonly taken: Map<string, CatalogObject>;
  readonly descriptors: DescriptorSpec[];
  /** The first object that has a setting of the domain. */
  readonly settings: Map<string, { readonly value: unknown; readonly from: CatalogObject }>;
}

function mergeObject(merge: Merge, object: CatalogObject): MergeResult & { type: 'merged' } {
  const { taken, descriptors } = merge;
  const duplicates: DuplicateRule[] = [];
  for (const field of domainOptions) {
    const { name } = field;
    const value = object.valid && getField(object.valid.document, field);
    if (value === undefined) continue;
    const first = merge.settings.get(name);
    if (first === undefined) merge.settings.set(name, { value, from: object });
    else if (first.value !== value) {
      duplicates.push({ composite: name, field: `spec.${name}`, older: first.from });
    }
  }
  let rules = object.valid?.rules ?? 0;
  const { descriptors: specs = [], locate } = object.valid?.document ?? {};
  for (const spec of specs) {
    // Limiters identify a level by this text: `a_b` without a value equals `a` with the value `b`.
    const composite = spec.value === undefined || spec.value === '' ? spec.key : `${spec.key}_${spec.value}`;
    const older = taken.get(composite);
    if (older === undefined) {
      taken.set(composite, object);
      descriptors.push(spec);
    } else {
      const field = (spec.at === undefined ? undefined : locate?.(spec.at)?.field) ?? 'spec';
      duplicates.push({ composite, field, older });
      rules -= countLimits(spec);
    }
  }
  return { type: 'merged', rules, duplicates };
}

function countLimits({ rateLimit, descriptors }: DescriptorSpec): number {
  let limits = rateLimit === undefined ? 0 : 1;
  for (const child of descriptors ?? []) limits += countLimits(child);
  return limits;
}
