import { parseKey } from './domain-owners.ts';
import { type CatalogObject, compareAge } from './validation.ts';

/** Objects with a valid version, by class and domain: see `toKey`. */
export class DomainMembers {
  readonly #members = new Map<string, Map<string, CatalogObject>>();
  /** Classes of the objects of a domain. */
  readonly #classes = new Map<string, Set<string>>();

  /** Number of domains, until an empty one is forgotten; each class of limiters counts. */
  get size(): number {
    return this.#members.size;
  }

  count(key: string): number {
    return this.#members.get(key)?.size ?? 0;
  }

  /** The oldest object first. */
  sorted(key: string): readonly CatalogObject[] {
    return [...(this.#members.get(key)?.values() ?? [])].sort(compareAge);
  }

  classesOf(domain: string): Iterable<string> {
    return this.#classes.get(domain) ?? [];
  }

  add(key: string, object: CatalogObject): void {
    const members = this.#members.get(key) ?? new Map<string, CatalogObject>();
    this.#members.set(key, members.set(object.id, object));
    const { domain, limiterClass } = parseKey(key);
    if (limiterClass === undefined) return;
    this.#classes.set(domain, (this.#classes.get(domain) ?? new Set()).add(limiterClass));
  }

  remove(key: string, id: string): void {
    this.#members.get(key)?.delete(id);
  }

  /** Forgets a domain without objects. */
  forget(key: string): void {
    this.#members.delete(key);
    const { domain, limiterClass } = parseKey(key);
    if (limiterClass === undefined) return;
    const classes = this.#classes.get(domain);
    classes?.delete(limiterClass);
    if (classes?.size === 0) this.#classes.delete(domain);
  }
}
