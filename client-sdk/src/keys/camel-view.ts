import { isObject } from './convert-keys.ts';
import { snakeCase } from './snake-case.ts';

/**
 * A read-only view of a parsed object that answers to either spelling: `view.accessToken` and `view.access_token` are the same.
 * Nested objects are views as well. The object itself is not copied.
 */
export function camelView<T extends object>(parsed: T): Readonly<Record<string, unknown>> & Readonly<T> {
  // The proxy answers to both spellings, which no type of the target can say.
  return new Proxy(parsed, {
    get: (target, key) => viewOf(Reflect.get(target, spelling(target, key))),
    has: (target, key) => Object.hasOwn(target, spelling(target, key)),
    set: () => false,
    defineProperty: () => false,
    deleteProperty: () => false,
  }) as Readonly<Record<string, unknown>> & Readonly<T>;
}

function spelling(target: object, key: string | symbol): string | symbol {
  return typeof key === 'symbol' || Object.hasOwn(target, key) ? key : snakeCase(key);
}

function viewOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(viewOf);
  return isObject(value) ? camelView(value) : value;
}
