import type { RuleProblem } from './problem.ts';
import type { DescriptorSpec, RuleDocument } from './rule-document.ts';

/** Most exemptions that are named; the others are found when these have been looked at. */
const maxExemptions = 100;

/**
 * Descriptors without a limit and without descriptors below them: requests that they match are not limited. That may be
 * meant, or a `rateLimit` is missing.
 */
export function findExemptions({ source, descriptors, locate }: RuleDocument): readonly RuleProblem[] {
  const found: RuleProblem[] = [];
  const visit = (specs: readonly DescriptorSpec[]): void => {
    for (const { key, at, rateLimit, descriptors: below = [] } of specs) {
      if (found.length === maxExemptions) return;
      if (below.length > 0) visit(below);
      else if (rateLimit === undefined) {
        const place = at === undefined ? undefined : locate?.(at);
        found.push({
          source,
          path: key,
          ...place,
          message: 'has neither rateLimit nor descriptors: requests that it matches are not limited',
        });
      }
    }
  };
  visit(descriptors);
  return found;
}
