import type { Position, YamlNode } from '@tollgate/yaml/tree';

/** Plain scalars that some version of YAML reads as another type than text. */
const otherType = /^(?:|~|null|true|false|y|n|yes|no|on|off|[-+.]*\d.*|[-+]?\.(?:inf|nan))$/i;

/** Takes a problem, with its position in the file. */
export type Report = (position: Position | undefined, message: string) => void;

interface NamedNode {
  readonly name: string;
  readonly key: YamlNode;
  readonly value: YamlNode;
}

/**
 * Reads values of the expected types. A value of another type is reported, and read as undefined.
 */
export class FieldReader {
  readonly #report: (position: Position, message: string) => void;

  constructor(report: (position: Position, message: string) => void) {
    this.#report = report;
  }

  /** The values of a mapping by key. Unknown and duplicate keys are reported. */
  fields<const K extends string>(node: YamlNode, keys: readonly K[]): Partial<Record<K, YamlNode>> {
    const found: Partial<Record<K, YamlNode>> = {};
    if (node.kind !== 'mapping')
      this.#report(node.position, `expected keys and values (${keys.join(', ')}), found ${describe(node)}`);
    for (const { key, value } of node.entries()) {
      const name = key.kind === 'scalar' ? key.text : '';
      const known = keys.find((candidate) => candidate === name);
      if (name === '') this.#report(key.position, 'a key must be text');
      else if (known === undefined)
        this.#report(key.position, `unknown key ${name}: expected one of ${keys.join(', ')}`);
      else if (found[known] !== undefined) this.#report(key.position, `duplicate key ${name}`);
      else found[known] = value;
    }
    return found;
  }

  /** The pairs of a mapping with keys of any name. Duplicate keys are reported. */
  entries(node: YamlNode): readonly NamedNode[] {
    if (node.kind !== 'mapping')
      this.#report(node.position, `expected keys and values, found ${describe(node)}`);
    const found = new Map<string, NamedNode>();
    for (const { key, value } of node.entries()) {
      const name = key.kind === 'scalar' ? key.text : '';
      if (name === '') this.#report(key.position, 'a key must be text');
      else if (found.has(name)) this.#report(key.position, `duplicate key ${name}`);
      else found.set(name, { name, key, value });
    }
    return [...found.values()];
  }

  items(node: YamlNode): readonly YamlNode[] {
    if (node.kind !== 'list') this.#report(node.position, `expected a list, found ${describe(node)}`);
    return node.items();
  }

  /** The readable items of a list, which must not be empty. */
  list<T>(node: YamlNode, readItem: (item: YamlNode) => T | undefined): T[] {
    const items = this.items(node);
    if (node.kind === 'list' && items.length === 0)
      this.#report(node.position, 'the list is empty: leave it out');
    return items.flatMap((item) => readItem(item) ?? []);
  }

  /** A text that is not empty. */
  text(node: YamlNode): string | undefined {
    const { text, isPlain, position } = node;
    if (text === '') this.#report(position, `expected a text, found ${describe(node)}`);
    else if (isPlain && otherType.test(text))
      this.#report(position, `put ${text} in quotes, as it is meant as text`);
    else return text;
    return undefined;
  }

  oneOf<const T extends string>(node: YamlNode, allowed: readonly T[]): T | undefined {
    const known = allowed.find((candidate) => candidate === node.text);
    if (known === undefined)
      this.#report(node.position, `expected one of ${allowed.join(', ')}, found ${describe(node)}`);
    return known;
  }

  flag(node: YamlNode): boolean | undefined {
    if (node.isPlain && (node.text === 'true' || node.text === 'false')) return node.text === 'true';
    this.#report(node.position, `expected true or false, found ${describe(node)}`);
    return undefined;
  }
}

function describe({ kind, text }: YamlNode): string {
  if (kind === 'list') return 'a list';
  if (kind === 'mapping') return 'keys and values';
  return text === '' ? 'nothing' : text;
}
