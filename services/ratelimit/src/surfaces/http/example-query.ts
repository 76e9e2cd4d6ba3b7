import type { RuleNode, RuleSet } from '@tollgate/rules/rule-set';

/** What is asked where no rule is there to ask about. */
const placeholder = 'domain=mydomain&descriptor=key=value,key2=value2';

/** A query of `/explain` that finds the first rule in force, so that the command shown to people does something. */
export function exampleQuery(rules: RuleSet | undefined): string {
  for (const [domain, root] of rules?.domains ?? []) {
    const entries = firstRule(root);
    if (entries !== undefined) {
      return `domain=${quotable(domain)}&descriptor=${entries.join(',')}`;
    }
  }
  return placeholder;
}

/** The entries that lead to the first rule below a node, as `key=value`; undefined when there is none to ask for in a URL. */
function firstRule(node: RuleNode): string[] | undefined {
  for (const child of node.children?.values() ?? []) {
    const entry = entryOf(child);
    const rest = child.match === undefined ? firstRule(child) : [];
    if (entry !== undefined && rest !== undefined) {
      return [entry, ...rest];
    }
  }
  return undefined;
}

/** Any value does where the rule names none. `,` and `=` part entries, so that what contains them needs POST. */
function entryOf({ composite, keyLength }: RuleNode): string | undefined {
  const parts = [composite.slice(0, keyLength), composite.slice(keyLength + 1) || 'value'];
  return parts.some((part) => /[,=]/.test(part)) ? undefined : parts.map(quotable).join('=');
}

/** A part of a URL that can stand between the single quotes of a shell. */
function quotable(text: string): string {
  return encodeURIComponent(text).replaceAll("'", '%27').replaceAll('%2F', '/');
}
