import { compareText } from '@tollgate/kit/text';
import type { FolderTexts, TextFile } from '@tollgate/kit/text-files';
import type { Steps } from '@tollgate/kit/time';
import { policyGroup, policyKind } from '@tollgate/policies/definition/resource-shape';
import type { ConfigObject, SourceProblem, UnreadFile } from '../catalog/source.ts';
import {
  findRenamed,
  isPolicy,
  type Manifest,
  type ManifestObject,
  parseManifests,
  type ReadManifest,
  readManifest,
} from './manifests.ts';

/** Other files, such as a README or a backup, may be in the same folder. */
export const manifestFiles = { ignoreDotFiles: true, extensions: ['.yaml', '.yml', '.json'] };

/** The objects of a folder at one moment. */
interface FolderObjects {
  readonly objects: readonly ConfigObject[];
  readonly policies: readonly ConfigObject[];
  readonly problems: readonly SourceProblem[];
  /** Manifests of other kinds, in files that have changed. */
  readonly others: readonly OtherManifest[];
  readonly unread: readonly UnreadFile[];
  /** Ids of policies that no file has, and which may be in one that cannot be understood. */
  readonly kept: readonly string[];
}

interface OtherManifest {
  readonly label: string;
  readonly kind: string;
}

interface FileContents {
  /** Undefined when the file could not be read and its previous objects stay. */
  readonly text: string | undefined;
  readonly objects: readonly ManifestObject[];
  readonly others: readonly OtherManifest[];
  readonly problems: readonly SourceProblem[];
  /** Whether the file may have policies that are not in `objects`. */
  readonly isIncomplete: boolean;
  /** Why policies of the file may be missing: no version of it was read, and none is stored. */
  readonly unread?: UnreadFile | undefined;
}

interface Version {
  readonly object: ManifestObject;
  readonly content: string;
  readonly generation: number;
}

const noContents: Omit<FileContents, 'text'> = { objects: [], others: [], problems: [], isIncomplete: true };

/** The contents of a folder across reads. Invalid files keep their objects. */
export class FolderContents {
  readonly #namespaces: readonly string[];
  #files = new Map<string, FileContents>();
  #versions = new Map<string, Version>();
  readonly #stored = new Map<string, Required<Pick<ConfigObject, 'stored' | 'allowedHosts'>>>();
  #reads = 0;
  #isFirstUpdate: boolean = true;
  #hasAllStored: boolean = true;
  /** Policies of the last update, or stored ones. */
  #policies: readonly ManifestObject[] = [];

  /** Objects of other namespaces are ignored; empty for all. */
  constructor(namespaces: readonly string[]) {
    this.#namespaces = namespaces;
  }

  /**
   * Sets the last valid versions of an earlier process, before the first update. If they are not
   * all, any file may have had others.
   */
  restore({
    objects,
    areAll,
  }: {
    readonly objects: readonly ManifestObject[];
    readonly areAll: boolean;
  }): void {
    this.#hasAllStored = areAll;
    this.#policies = objects.filter(isPolicy);
    for (const object of objects) {
      const { id, label, manifest, allowedHosts } = object;
      const readSpec = () => Reflect.get(Object(manifest), 'spec');
      this.#stored.set(id, { stored: { generation: 0, readSpec }, allowedHosts });
      const source = label.slice(0, label.lastIndexOf('#'));
      const file = this.#files.get(source) ?? noContents;
      this.#files.set(source, { ...file, text: undefined, objects: [...file.objects, object] });
    }
  }

  /** The stored objects of the selected namespaces, older than any version that is read. */
  select(stored: readonly ManifestObject[]): readonly ConfigObject[] {
    return stored
      .filter((object) => this.#isSelected(object))
      .map((object) => ({ ...object, generation: 0 }));
  }

  #isSelected({ namespace }: ManifestObject): boolean {
    return this.#namespaces.length === 0 || this.#namespaces.includes(namespace);
  }

  /** The current version of an object. */
  find(id: string): ManifestObject | undefined {
    return this.#versions.get(id)?.object;
  }

  /** Runs must not overlap. */
  *update(texts: FolderTexts): Steps<FolderObjects> {
    this.#reads += 1;
    const before = this.#files;
    this.#files = yield* this.#parseAll(texts);
    this.#isFirstUpdate = false;
    const selected = selectObjects([...this.#files.values()], this.#namespaces);
    const kept = this.#findKept(selected.objects);
    const versions = new Map<string, Version>();
    for (const object of [...selected.objects, ...kept]) {
      versions.set(object.id, this.#toVersion(object));
      yield;
    }
    // A folder without objects since the start may be a volume that is not mounted.
    const isMounted = this.#versions.size > 0 || versions.size > 0;
    this.#versions = versions;
    this.#policies = [...versions.values()].map(({ object }) => object).filter(isPolicy);
    if (isMounted) this.#forgetMissing();
    const found = [...versions.values()].map(
      ({ object, generation }): ConfigObject => ({ ...object, generation, ...this.#stored.get(object.id) }),
    );
    return {
      objects: found.filter((object) => !isPolicy(object)),
      policies: found.filter(isPolicy),
      problems: [...texts.problems, ...selected.problems],
      unread: [...this.#files.values()].flatMap(({ unread }) => unread ?? []),
      others: [...this.#files].flatMap(([source, file]) => (before.get(source) === file ? [] : file.others)),
      kept: kept.map(({ id }) => id),
    };
  }

  /** A stored version must not come back into force when its object is created again. */
  #forgetMissing(): void {
    for (const id of this.#stored.keys()) if (!this.#versions.has(id)) this.#stored.delete(id);
  }

  /**
   * A missing policy may have moved to a file that cannot be read or understood. It stays, because
   * without its policy a host may be open.
   */
  #findKept(objects: readonly ManifestObject[]): readonly ManifestObject[] {
    if (![...this.#files.values()].some(({ isIncomplete }) => isIncomplete)) return [];
    const found = new Set(objects.map(({ id }) => id));
    return this.#policies.filter((object) => !found.has(object.id) && this.#isSelected(object));
  }

  *#parseAll({ files: texts, problems: unread }: FolderTexts): Steps<Map<string, FileContents>> {
    const files = new Map<string, FileContents>();
    for (const file of texts) files.set(file.source, yield* this.#parseFile(file));
    for (const problem of unread) {
      const { source } = problem;
      const known = this.#files.get(source);
      const missing = this.#findUnread(known, { ...problem, namesPolicies: false });
      // The text is removed, so that the next one counts as changed.
      const text = undefined;
      files.set(source, {
        ...(known ?? noContents),
        ...{ text, problems: [], isIncomplete: true, unread: missing },
      });
    }
    return files;
  }

  *#parseFile(file: TextFile): Steps<FileContents> {
    const known = this.#files.get(file.source);
    if (known?.text === file.text) return known;
    const parsed = yield* parseManifests(file);
    const { objects, others } = known ?? noContents;
    const namesPolicies = file.text.includes(policyGroup) || file.text.includes(policyKind);
    const findUnread = (problem: SourceProblem | undefined) =>
      problem && this.#findUnread(known, { ...problem, namesPolicies });
    if (parsed.ok) {
      const { unknown, ...contents } = classify(parsed.manifests, objects);
      const isIncomplete = unknown !== undefined;
      return { text: file.text, ...contents, isIncomplete, unread: findUnread(unknown) };
    }
    return {
      text: file.text,
      objects,
      others,
      problems: [parsed.problem],
      isIncomplete: true,
      unread: findUnread(parsed.problem),
    };
  }

  /** A file that is new since the first update had no policies in force; stored ones are known. */
  #findUnread(known: FileContents | undefined, file: UnreadFile): UnreadFile | undefined {
    const isKnown = known !== undefined && this.#hasAllStored;
    const isUnread = this.#isFirstUpdate ? !isKnown : known?.unread !== undefined;
    return isUnread ? file : undefined;
  }

  /** The generation is the number of the read that found a change, so that it always grows. */
  #toVersion(object: ManifestObject): Version {
    const known = this.#versions.get(object.id);
    if (known?.object === object) return known;
    const content = JSON.stringify(object.manifest);
    return { object, content, generation: known?.content === content ? known.generation : this.#reads };
  }
}

/** Reads a manifest of a file that had these objects before. */
function readAs(manifest: Manifest, before: readonly ManifestObject[]): ReadManifest {
  const read = readManifest(manifest);
  const renamed = read.type === 'other' ? findRenamed(manifest, before) : undefined;
  if (read.type !== 'other' || renamed === undefined) return read;
  const { kind } = Object(renamed.manifest);
  const message = `kind: '${read.kind}' is not read, but this has the name and spec of a ${kind}: correct apiVersion and kind, or remove it`;
  return { type: 'problem', problem: { source: manifest.label, message }, id: renamed.id };
}

/** An invalid manifest keeps the previous version of its object. */
function classify(
  manifests: readonly Manifest[],
  before: readonly ManifestObject[],
): Pick<FileContents, 'objects' | 'others' | 'problems'> & { readonly unknown: SourceProblem | undefined } {
  const known = new Map(before.map((object) => [object.id, object]));
  const objects: ManifestObject[] = [];
  const others: OtherManifest[] = [];
  const problems: SourceProblem[] = [];
  /** Why an object is not served of which the file has no earlier version: it may be any policy. */
  let unknown: SourceProblem | undefined;
  for (const manifest of manifests) {
    const read = readAs(manifest, before);
    if (read.type === 'other') others.push({ label: manifest.label, kind: read.kind });
    else if (read.type === 'object' && manifest.ambiguous.length === 0) objects.push(read.object);
    else {
      problems.push(...(read.type === 'problem' ? [read.problem] : manifest.ambiguous));
      const id = read.type === 'problem' ? read.id : read.object.id;
      const kept = id === undefined ? undefined : known.get(id);
      if (kept !== undefined) objects.push(kept);
      else unknown ??= problems.at(-1);
    }
  }
  return { objects, others, problems, unknown };
}

/** The objects of the selected namespaces, and of several with the same name the first. */
function selectObjects(
  files: readonly FileContents[],
  namespaces: readonly string[],
): { readonly objects: readonly ManifestObject[]; readonly problems: readonly SourceProblem[] } {
  const selected = new Map<string, ManifestObject>();
  const problems = files.flatMap((file) => file.problems);
  const all = files.flatMap((file) => file.objects).sort((a, b) => compareText(a.order, b.order));
  for (const object of all) {
    if (namespaces.length > 0 && !namespaces.includes(object.namespace)) continue;
    const first = selected.get(object.id);
    if (first === undefined) selected.set(object.id, object);
    else
      problems.push({
        source: object.label,
        message: `${object.id} is already in ${first.label}: rename one`,
      });
  }
  return { objects: [...selected.values()], problems };
}
