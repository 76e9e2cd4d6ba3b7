import type { TextFile } from '@tollgate/kit/text-files';
import { parse, splitDocuments, type YamlDocument } from '@tollgate/yaml/documents';

/** `a.yaml#2.items[0]`: file, number of the document, item of a list. */
const labelForm = /^(?<source>.*)#(?<number>\d+)(?:\.(?<item>items\[\d+\]))?$/s;

/** Positions of fields in manifests. Files are parsed again on demand. */
export class ManifestPositions {
  readonly #texts: ReadonlyMap<string, string>;
  readonly #documents = new Map<string, readonly YamlDocument[]>();

  constructor(files: readonly TextFile[]) {
    this.#texts = new Map(files.map(({ source, text }) => [source, text]));
  }

  /** Position of a field, or of its nearest ancestor. Undefined for an invalid label. */
  find(label: string, field: string): { source: string; line: number; column: number } | undefined {
    const { source = '', number = '', item = '' } = labelForm.exec(label)?.groups ?? {};
    const document = this.#getDocuments(source)[Number(number) - 1];
    if (document === undefined) return undefined;
    const path = item !== '' && field !== '' ? `${item}.${field}` : `${item}${field}`;
    return { source, ...document.positionOf(path) };
  }

  #getDocuments(source: string): readonly YamlDocument[] {
    const documents = this.#documents.get(source) ?? parseDocuments(this.#texts.get(source) ?? '');
    this.#documents.set(source, documents);
    return documents;
  }
}

/** The documents that labels count: all except empty ones. */
function parseDocuments(text: string): readonly YamlDocument[] {
  return splitDocuments(text).flatMap((part) => {
    const parsed = parse(part);
    return parsed.ok ? parsed.documents.filter(({ value }) => value !== null && value !== undefined) : [];
  });
}

/** Parses `a.yaml:4:22`. */
export function parsePosition(source: string): {
  readonly source: string;
  readonly line?: number;
  readonly column?: number;
} {
  const { file, line, column } = /^(?<file>.*):(?<line>\d+):(?<column>\d+)$/s.exec(source)?.groups ?? {};
  return file === undefined ? { source } : { source: file, line: Number(line), column: Number(column) };
}
