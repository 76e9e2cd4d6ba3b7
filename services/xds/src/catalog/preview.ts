import type { RuleProblem } from '@tollgate/rules/problem';
import type { MergeResult } from './merge.ts';
import { type CatalogObject, formatProblems, type ValidVersion } from './validation.ts';
import {
  type Condition,
  describeAllowed,
  describePrecedence,
  describeRefusal,
  displayName,
  maxComposite,
  toValidationResult,
  type ValidationResult,
} from './validation-result.ts';

/** The result of an object if it were created or changed now. */
export interface Preview {
  /** Why it would not be accepted; empty for an acceptable object. */
  readonly problems: readonly RuleProblem[];
  /** Rules without effect, exemptions, and other objects that would lose rules. */
  readonly warnings: readonly string[];
}

export interface LimitsPreview extends Preview {
  /** The condition that it would have. */
  readonly accepted: Condition;
}

export function toInvalidPreview(problems: readonly RuleProblem[]): LimitsPreview {
  const message = formatProblems(problems);
  return { accepted: { status: 'False', reason: 'Invalid', message }, problems, warnings: [] };
}

/** `merged` are the results of all objects of the domain, `before` those without the change. */
export function toPreview(
  object: CatalogObject & { readonly valid: ValidVersion },
  merged: ReadonlyMap<CatalogObject, MergeResult>,
  before: ReadonlyMap<string, ValidationResult>,
): LimitsPreview {
  const { warnings } = object.valid;
  return {
    accepted: toValidationResult(object, merged.get(object), merged.size === 1).accepted,
    problems: findMergeProblems(object, merged.get(object)),
    // With other objects in the domain, a limit that looks unused may be referenced by one of them.
    warnings: [
      ...(merged.size > 1 || warnings === '' ? [] : warnings.split('\n')),
      ...findLosses(object, merged, before),
    ],
  };
}

function findMergeProblems(
  object: CatalogObject & { readonly valid: ValidVersion },
  merge: MergeResult | undefined,
): readonly RuleProblem[] {
  const { document } = object.valid;
  const { domain } = document;
  const toProblem = (field: string, message: string): RuleProblem => ({
    source: document.source,
    path: domain,
    field,
    message,
  });
  switch (merge?.type) {
    case 'conflict': {
      const { winner } = merge;
      const older = `whose object ${displayName(winner)} ${describePrecedence(winner, object)}`;
      const message = `'${domain}' belongs to namespace '${winner.namespace}', ${older}: choose another domain`;
      return [toProblem('spec.domain', message)];
    }
    case 'reserved': {
      const { namespace, untilMs } = merge;
      const until = new Date(untilMs).toISOString();
      const message = `'${domain}' belonged to namespace '${namespace}', and is kept for it until ${until}: choose another domain, or wait`;
      return [toProblem('spec.domain', message)];
    }
    case 'refused': {
      const message = `${describeRefusal(object, document)}: ${describeAllowed(object, document)}`;
      return [toProblem('spec.domain', message)];
    }
    case 'merged':
      return merge.duplicates.map(({ composite, field, older }) => {
        const precedence = describePrecedence(older, object);
        const message = `'${composite.slice(0, maxComposite)}' is already in ${displayName(older)}, which ${precedence}`;
        return toProblem(field, message);
      });
    default:
      return [];
  }
}

/** Other objects that are accepted now, and of which rules would be left out. */
function findLosses(
  object: CatalogObject,
  merged: ReadonlyMap<CatalogObject, MergeResult>,
  before: ReadonlyMap<string, ValidationResult>,
): readonly string[] {
  return [...merged].flatMap(([other, merge]) => {
    if (other === object || before.get(other.id)?.accepted.status !== 'True') return [];
    const { accepted } = toValidationResult(other, merge, false);
    return accepted.status === 'True' ? [] : [`${displayName(other)} loses rules: ${accepted.message}`];
  });
}
