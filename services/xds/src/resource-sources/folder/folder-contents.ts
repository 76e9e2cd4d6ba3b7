import { compareText } from '@tollgate/kit/text';
import type { FolderTexts, TextFile } from '@tollgate/kit/text-files';
import type { Sliceable } from '@tollgate/kit/time';
import type { ConfigObject, SourceProblem } from '../../domain/config-object.ts';
import { type ManifestObject, readManifest } from './manifest-object.ts';
import { type Manifest, parseManifests } from './parse-manifests.ts';

/** The objects of a folder at one moment. */
interface FolderObjects {
  readonly objects: readonly ConfigObject[];
  readonly problems: readonly SourceProblem[];
  /** Manifests of other kinds, in files that have changed. */
  readonly others: readonly OtherManifest[];
}

/** A manifest that is none of ours. */
export interface OtherManifest {
  readonly label: string;
  readonly kind: string;
}

/** What a folder has held so far. */
export interface FolderContents {
  /** Takes note of the texts of the folder. In steps; one run at a time. */
  update(texts: FolderTexts): Sliceable<FolderObjects>;
}

/** Makes contents of nothing. With `namespaces`, objects of others are left out. */
export function createFolderContents(namespaces: readonly string[]): FolderContents {
  let files = new Map<string, FileContents>();
  let versions = new Map<string, Version>();
  let reading = 0;

  /** The file as it was read last, if nothing of it has changed; one that cannot be parsed keeps what it had. */
  function* readFile(file: TextFile): Sliceable<FileContents> {
    const known = files.get(file.source);
    if (known?.text === file.text) return known;
    const parsed = yield* parseManifests(file);
    const { objects, others } = known ?? nothing;
    if (parsed.ok) return { text: file.text, ...sortOut(parsed.manifests, objects) };
    return { text: file.text, objects, others, problems: [parsed.problem] };
  }

  function* readAll({ files: texts, problems: unread }: FolderTexts): Sliceable<Map<string, FileContents>> {
    const read = new Map<string, FileContents>();
    for (const file of texts) read.set(file.source, yield* readFile(file));
    for (const { source } of unread) {
      const known = files.get(source);
      // Without a text: whatever it reads next is new.
      if (known !== undefined) read.set(source, { ...known, text: undefined, problems: [] });
    }
    return read;
  }

  /** A generation is the number of the reading that found the object different: it grows whatever happens between. */
  function versionOf(object: ManifestObject): Version {
    const known = versions.get(object.id);
    if (known?.object === object) return known;
    const content = JSON.stringify(object.manifest);
    return { object, content, generation: known?.content === content ? known.generation : reading };
  }

  return {
    *update(texts) {
      reading += 1;
      const before = files;
      files = yield* readAll(texts);
      const chosen = choose([...files.values()], namespaces);
      const next = new Map<string, Version>();
      for (const object of chosen.objects) {
        next.set(object.id, versionOf(object));
        yield;
      }
      versions = next;
      return {
        objects: [...versions.values()].map(({ object, generation }) => ({ ...object, generation })),
        problems: [...texts.problems, ...chosen.problems],
        others: [...files].flatMap(([source, file]) => (before.get(source) === file ? [] : file.others)),
      };
    },
  };
}

interface FileContents {
  /** Undefined when it could not be read: what was read before stays. */
  readonly text: string | undefined;
  readonly objects: readonly ManifestObject[];
  readonly others: readonly OtherManifest[];
  readonly problems: readonly SourceProblem[];
}

interface Version {
  readonly object: ManifestObject;
  readonly content: string;
  readonly generation: number;
}

const nothing: Omit<FileContents, 'text'> = { objects: [], others: [], problems: [] };

/** What stands for an object and cannot be taken for it leaves the object as it was `before`. */
function sortOut(
  manifests: readonly Manifest[],
  before: readonly ManifestObject[],
): Omit<FileContents, 'text'> {
  const known = new Map(before.map((object) => [object.id, object]));
  const objects: ManifestObject[] = [];
  const others: OtherManifest[] = [];
  const problems: SourceProblem[] = [];
  for (const manifest of manifests) {
    const read = readManifest(manifest);
    if (read.type === 'other') others.push({ label: manifest.label, kind: read.kind });
    else if (read.type === 'object' && manifest.ambiguous.length === 0) objects.push(read.object);
    else {
      problems.push(...(read.type === 'problem' ? [read.problem] : manifest.ambiguous));
      const id = read.type === 'problem' ? read.id : read.object.id;
      const kept = id === undefined ? undefined : known.get(id);
      if (kept !== undefined) objects.push(kept);
    }
  }
  return { objects, others, problems };
}

/** The objects that count: of the wanted namespaces, and the first of each name. */
function choose(
  files: readonly FileContents[],
  namespaces: readonly string[],
): { readonly objects: readonly ManifestObject[]; readonly problems: readonly SourceProblem[] } {
  const chosen = new Map<string, ManifestObject>();
  const problems = files.flatMap((file) => file.problems);
  const all = files.flatMap((file) => file.objects).sort((a, b) => compareText(a.order, b.order));
  for (const object of all) {
    if (namespaces.length > 0 && !namespaces.includes(object.namespace)) continue;
    const first = chosen.get(object.id);
    if (first === undefined) chosen.set(object.id, object);
    else
      problems.push({
        source: object.label,
        message: `${object.id} is already in ${first.label}: rename one`,
      });
  }
  return { objects: [...chosen.values()], problems };
}
