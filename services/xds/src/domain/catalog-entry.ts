import { compareText } from '@tollgate/kit/text';
import type { RuleDocument } from '@tollgate/rules/rule-document';
import type { ConfigObject } from './config-object.ts';

/** One object of the catalog, judged on its own. */
export interface CatalogEntry extends Omit<ConfigObject, 'manifest'> {
  /** Its newest version that is valid on its own: what counts of it. Undefined while there was none. */
  readonly good: GoodVersion | undefined;
  /** What is wrong with the present version, line by line; undefined when that is the good one. */
  readonly problems: string | undefined;
}

/** A version of an object that the limiter's own loader takes. */
export interface GoodVersion {
  readonly generation: number;
  readonly document: RuleDocument;
  /** Limits in it. */
  readonly rules: number;
  /** What is accepted and to be checked, line by line: rules without effect, exemptions; empty when there is nothing. */
  readonly warnings: string;
}

/** Orders by age, the oldest first: whoever comes first has what both want. The same for every replica. */
export function compareAge(a: CatalogEntry, b: CatalogEntry): number {
  return a.createdMs - b.createdMs || compareText(a.order, b.order) || compareText(a.id, b.id);
}

/** What people look for: the id, and the file it is in if there is one. */
export function nameOf({ id, label }: Pick<CatalogEntry, 'id' | 'label'>): string {
  return label === undefined ? id : `${id} (${label})`;
}
