import {
  CORE_SCHEMA,
  dump,
  EVENT_ID,
  type Event,
  loadAll,
  mergeTag,
  parseEvents,
  YAMLException,
} from 'js-yaml';
import { NodeTable, type NodeTableOptions, yamlKind } from './node-table.ts';
import {
  LineIndex,
  type Position,
  toYamlError,
  type YamlError,
  YamlNode,
  YamlProblem,
  YamlTree,
} from './tree.ts';

/** Part of a YAML text that begins where a document begins. */
export interface YamlPart {
  readonly text: string;
  /** Lines of the file before it. */
  readonly linesBefore: number;
}

/** No value, not even a multi-line one, can contain such a line. */
const documentStart = /^---(?=[ \t\r\n]|$)/gm;

/** A directive belongs to the document after it, which begins at the next `---`. */
const directive = /^%/m;

/**
 * Splits a text into its documents, so that they can be parsed one at a time. A text with
 * directives is not split.
 */
export function splitDocuments(text: string): YamlPart[] {
  if (directive.test(text)) return [{ text, linesBefore: 0 }];
  const starts = [0, ...[...text.matchAll(documentStart)].map(({ index }) => index), text.length];
  const parts: YamlPart[] = [];
  let linesBefore = 0;
  for (const [index, start] of starts.slice(0, -1).entries()) {
    const part = text.slice(start, starts[index + 1]);
    parts.push({ text: part, linesBefore });
    linesBefore += part.split('\n').length - 1;
  }
  return parts;
}

/** The documents of a text, or why it cannot be parsed. */
export type ParsedYaml =
  | { readonly ok: true; readonly documents: readonly YamlDocument[] }
  | { readonly ok: false; readonly error: YamlError };

const schema = CORE_SCHEMA.withTags(mergeTag);

/** Parses all documents as plain values: the core schema of YAML 1.2, with merge keys. */
export function parse({ text, linesBefore }: YamlPart): ParsedYaml {
  try {
    const values: readonly unknown[] = loadAll(text, { schema });
    let trees: readonly YamlTree[] | undefined;
    const findTree = (index: number) => {
      trees ??= parseTreesOrNone(text, new LineIndex(text, linesBefore));
      return trees[index];
    };
    return {
      ok: true,
      documents: values.map((value, index) => new YamlDocument(value, () => findTree(index))),
    };
  } catch (error) {
    if (!(error instanceof YAMLException))
      return {
        ok: false,
        error: { reason: error instanceof Error ? error.message : String(error), position: undefined },
      };
    return { ok: false, error: toYamlError(error, new LineIndex(text, linesBefore)) };
  }
}

/** An alias inside its own anchor loads as a value, and has no tree. */
function parseTreesOrNone(text: string, lines: LineIndex): readonly YamlTree[] {
  try {
    return parseTrees(text, lines);
  } catch (error) {
    toYamlError(error, lines);
    return [];
  }
}

/** Path and position of a node. */
interface Located {
  /** JSON path, such as `spec.descriptors[0].key`. */
  readonly path: string;
  /** Position of a value; in a mapping, the position of its key. */
  readonly position: Position;
}

/** Formats a value as YAML that 1.1, which kubectl reads, and 1.2 understand in the same way. */
export function formatYaml(value: unknown): string {
  return dump(value, { noRefs: true, lineWidth: -1, quoteStyle: 'double' });
}

/** A document. Its text is parsed a second time, for positions, on first use. */
export class YamlDocument {
  readonly value: unknown;
  readonly #findTree: () => YamlTree | undefined;

  constructor(value: unknown, findTree: () => YamlTree | undefined) {
    this.value = value;
    this.#findTree = findTree;
  }

  /**
   * Position of the field at a JSON path, or of its nearest ancestor when it is missing or behind
   * an alias.
   */
  positionOf(wanted: string): Position {
    const tree = this.#findTree();
    let nearest: { length: number; node: number } = { length: -1, node: 0 };
    if (tree === undefined || tree.size === 0) return { line: 1, column: 1 };
    const descend = (node: number, path: string, shown: number): void => {
      if (!isPrefix(path, wanted)) return;
      if (path.length > nearest.length) nearest = { length: path.length, node: shown };
      for (const child of childrenOf(tree, node)) descend(child.node, path + child.step(path), child.shown);
    };
    descend(0, '', 0);
    return tree.position(nearest.node) ?? { line: 1, column: 1 };
  }

  /**
   * Visits scalars without quotes, keys included. The content of an alias is visited where it is
   * defined only.
   */
  visitPlainScalars(visit: (text: string, locate: () => Located) => void): void {
    const tree = this.#findTree();
    if (tree === undefined || tree.size === 0) return;
    const steps: Child[] = [];
    const locate = (): Located => ({
      path: steps.reduce((path, child) => path + child.step(path), ''),
      position: tree.position(steps.at(-1)?.shown ?? 0) ?? { line: 1, column: 1 },
    });
    const descend = (node: number): void => {
      if (tree.isPlain(node) && tree.text(node) !== '') visit(tree.text(node), locate);
      for (const child of childrenOf(tree, node)) {
        steps.push(child);
        descend(child.node);
        steps.pop();
      }
    };
    descend(0);
  }
}

/** A key, a value or an item. */
interface Child {
  readonly node: number;
  /** The node whose position is shown: the key of a value. */
  readonly shown: number;
  /** Suffix of the path of its parent. */
  readonly step: (parentPath: string) => string;
}

function* childrenOf(tree: YamlTree, parent: number): Generator<Child> {
  const kind = tree.kind(parent);
  const isMapping = kind === yamlKind.mapping;
  if (!isMapping && kind !== yamlKind.sequence) return;
  const end = tree.next(parent);
  for (let node = parent + 1, index = 0; node < end; node = tree.next(node), index++) {
    const position = index;
    if (!isMapping) {
      yield { node, shown: node, step: () => `[${position}]` };
      continue;
    }
    const key = node;
    const step = (path: string) => (path === '' ? keyText(tree, key) : `.${keyText(tree, key)}`);
    yield { node: key, shown: key, step };
    node = tree.next(key);
    yield { node, shown: key, step };
  }
}

const keyText = (tree: YamlTree, key: number): string =>
  tree.kind(key) === yamlKind.scalar ? tree.text(key) : '?';

const isPrefix = (path: string, wanted: string): boolean =>
  path === '' || path === wanted || wanted.startsWith(`${path}.`) || wanted.startsWith(`${path}[`);

/** The root node of a text, undefined for an empty one, or why it cannot be read. */
export type ParsedNode =
  | { readonly ok: true; readonly root: YamlNode | undefined }
  | { readonly ok: false; readonly error: YamlError };

/**
 * Parses a text of at most one document into nodes with positions. Tags are an error; merge keys
 * are ordinary keys.
 */
export function parseNode(text: string, { maxDepth }: { readonly maxDepth: number }): ParsedNode {
  const lines = new LineIndex(text);
  try {
    const [tree, second] = parseTrees(text, lines, { maxDepth, tags: false });
    if (second !== undefined) {
      const position = tree?.position(tree.size - 1) ?? { line: 1, column: 1 };
      return { ok: false, error: { reason: 'a second document follows: only one is allowed', position } };
    }
    return { ok: true, root: tree === undefined || tree.size === 0 ? undefined : new YamlNode(tree, 0) };
  } catch (error) {
    return { ok: false, error: toYamlError(error, lines) };
  }
}

interface TreeOptions extends NodeTableOptions {
  /** Deepest nesting. Default: that of the parser, 100. */
  readonly maxDepth?: number;
}

/** A tree for each document. @throws YAMLException, YamlProblem. */
function parseTrees(text: string, lines: LineIndex, { maxDepth, tags }: TreeOptions = {}): YamlTree[] {
  const events = parseEvents(text, { ...(maxDepth !== undefined && { maxDepth }) });
  return eventsByDocument(events).map((part) => {
    const table = new NodeTable(text, { tags, capacity: part.length });
    table.add({ events: part, offset: 0 });
    const { problem } = table;
    if (problem !== undefined) throw new YamlProblem(problem.reason, lines.positionAt(problem.offset));
    return new YamlTree(table, lines);
  });
}

function eventsByDocument(events: readonly Event[]): readonly (readonly Event[])[] {
  const starts = events.flatMap((event, index) => (event.type === EVENT_ID.DOCUMENT ? [index] : []));
  return starts.map((start, index) => events.slice(start, starts[index + 1]));
}
