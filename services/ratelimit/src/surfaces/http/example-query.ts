import type { RuleNode, RuleSet } from '@tollgate/rules/rule-set';

/** What is asked where no rule is there to ask about. */
const placeholder = 'domain=mydomain&descriptor=key=value,key2=value2';

/** A query of `/explain` that finds the first rule in force, so that the command shown to people does something. */
export function exampleQuery(rules: RuleSet | undefined): string {
  for (const [domain, root] of rules?.domains ?? []) {
    const entries = firstRule(root);
    if (entries !== undefined) {
      return `domain=${encodeURIComponent(domain)}&descriptor=${entries.join(',')}`;
    }
  }
  return placeholder;
}

/** The entries that lead to the first rule below a node, as `key=value`; undefined when there is none. */
function firstRule(node: RuleNode): string[] | undefined {
  for (const child of node.children?.values() ?? []) {
    const rest = child.match === undefined ? firstRule(child) : [];
    if (rest !== undefined) {
      return [entryOf(child), ...rest];
    }
  }
  return undefined;
}

/** Any value does where the rule names none. Characters that the query gives a meaning are left to the reader. */
function entryOf({ composite, keyLength }: RuleNode): string {
  const value = composite.slice(keyLength + 1) || 'value';
  return `${encodeURIComponent(composite.slice(0, keyLength))}=${encodeURIComponent(value)}`;
}
