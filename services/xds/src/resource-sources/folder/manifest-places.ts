import type { TextFile } from '@tollgate/kit/text-files';
import { createPlaceFinder } from '@tollgate/rules/place-finder';
import { parsePart } from './parse-manifests.ts';
import { splitDocuments, type YamlPart } from './split-documents.ts';
import { visitYamlNodes } from './yaml-nodes.ts';

/** Where something is in a file. */
export interface FilePlace {
  readonly source: string;
  readonly line: number;
  readonly column: number;
}

/** `a.yaml#2.items[0]`: file, number of the document, item of a list. */
const labelForm = /^(?<source>.*)#(?<number>\d+)(?:\.(?<item>items\[\d+\]))?$/s;

/**
 * Makes the function from the label of a manifest and a JSON path in it to the place: of that field, or of what comes
 * nearest when it is missing or behind an alias. Undefined for what is no label. The text of each file is read again when
 * it is first asked for, which saves keeping places nobody asks for.
 */
export function createManifestPlaces(
  files: readonly TextFile[],
): (label: string, field: string) => FilePlace | undefined {
  const texts = new Map(files.map(({ source, text }) => [source, text]));
  const known = new Map<string, readonly NumberedDocument[]>();

  function documentsOf(source: string): readonly NumberedDocument[] {
    const documents = known.get(source) ?? numberDocuments(texts.get(source) ?? '');
    known.set(source, documents);
    return documents;
  }

  return (label, field) => {
    const { source = '', number = '', item = '' } = labelForm.exec(label)?.groups ?? {};
    const document = documentsOf(source)[Number(number) - 1];
    if (document === undefined) return undefined;
    const path = item !== '' && field !== '' ? `${item}.${field}` : `${item}${field}`;
    return { source, ...findPath(document, path) };
  };
}

/** A document and which one of its part it is, from 0. */
interface NumberedDocument {
  readonly part: YamlPart;
  readonly document: number;
}

/** Those that labels count: without the empty ones. */
function numberDocuments(text: string): NumberedDocument[] {
  return splitDocuments(text).flatMap((part) => {
    const parsed = parsePart(part, '');
    if (!parsed.ok) return [];
    return parsed.documents.flatMap((content, document) =>
      content === null || content === undefined ? [] : [{ part, document }],
    );
  });
}

function findPath({ part, document }: NumberedDocument, wanted: string): { line: number; column: number } {
  let nearest = { path: '', offset: -1 };
  visitYamlNodes(part.text, (node) => {
    if (node.document !== document) return;
    const path = node.path();
    const isNearer = nearest.offset === -1 || path.length > nearest.path.length;
    if (isNearer && leadsTo(path, wanted)) nearest = { path, offset: node.offset };
  });
  const { line = 1, column = 1 } = createPlaceFinder(part.text)(Math.max(0, nearest.offset));
  return { line: part.linesBefore + line, column };
}

const leadsTo = (path: string, wanted: string): boolean =>
  path === '' || path === wanted || wanted.startsWith(`${path}.`) || wanted.startsWith(`${path}[`);
