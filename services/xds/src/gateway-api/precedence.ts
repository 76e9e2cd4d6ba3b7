import { compareText } from '@tollgate/kit/text';
import type { AncestorRef, PolicyAncestor } from '../policies/policy-result.ts';
import type { Gateway, Listener } from './objects.ts';
import type { Applied } from './resolve.ts';

/** Policies that a message names; there may be one for each route. */
const maxNamed = 4;

/** Policies that change the effect of a policy at a listener. */
interface Effect {
  /** Whether its access and limits apply to any requests. */
  applies: boolean;
  /** Whether its `overrides` hold. */
  overrides: boolean;
  /** More specific policies, which apply instead. */
  readonly replacedBy: Set<string>;
  /** Policies whose `overrides` hold in addition. */
  readonly overriddenBy: Set<string>;
}

/** Collects which policies replace others, and whose overrides hold in addition to others. */
export class PolicyPrecedence {
  /** Effects by Gateway, listener and policy. */
  readonly #effects = new Map<string, Map<Listener, Map<string, Effect>>>();

  /** `applied` are the policies that apply to some requests at the listener. */
  add({ policy, overrides, replaced }: Applied, gateway: Gateway, listener: Listener): void {
    if (policy === '') return;
    const effects = this.#effectsAt(gateway, listener);
    const effect = effectOf(effects, policy);
    effect.applies = true;
    for (const id of overrides) {
      effectOf(effects, id).overrides = true;
      if (id !== policy) effect.overriddenBy.add(id);
    }
    for (const id of replaced) effectOf(effects, id).replacedBy.add(policy);
  }

  /** Finds what other policies change at an ancestor of a policy. */
  find(
    policy: string,
    { kind, namespace, name, sectionName }: AncestorRef,
  ): Pick<PolicyAncestor, 'replaced' | 'overridden'> {
    if (kind !== 'Gateway') return {};
    const atGateway = [...(this.#effects.get(`${namespace}/${name}`) ?? [])];
    const effects = atGateway.flatMap(([listener, byPolicy]) =>
      sectionName === undefined || sectionName === listener.name ? (byPolicy.get(policy) ?? []) : [],
    );
    const replacedBy = effects.flatMap((effect) => [...effect.replacedBy]);
    const overriddenBy = effects.flatMap((effect) => [...effect.overriddenBy]);
    return {
      ...(replacedBy.length > 0 && { replaced: toReplaced(effects, formatNames(replacedBy)) }),
      ...(overriddenBy.length > 0 && {
        overridden: `overrides of ${formatNames(overriddenBy)} hold in addition, and a request needs the permission of each`,
      }),
    };
  }

  #effectsAt({ object }: Gateway, listener: Listener): Map<string, Effect> {
    const listeners = this.#effects.get(object.id) ?? new Map<Listener, Map<string, Effect>>();
    const effects = listeners.get(listener) ?? new Map<string, Effect>();
    if (listeners.size === 0) this.#effects.set(object.id, listeners);
    if (effects.size === 0) listeners.set(listener, effects);
    return effects;
  }
}

function effectOf(effects: Map<string, Effect>, policy: string): Effect {
  const known = effects.get(policy);
  if (known !== undefined) return known;
  const effect = {
    applies: false,
    overrides: false,
    replacedBy: new Set<string>(),
    overriddenBy: new Set<string>(),
  };
  effects.set(policy, effect);
  return effect;
}

function toReplaced(effects: readonly Effect[], names: string): NonNullable<PolicyAncestor['replaced']> {
  const overrides = effects.some((effect) => effect.overrides) ? '; its overrides hold there, too' : '';
  if (effects.some(({ applies }) => applies))
    return {
      reason: 'PartiallyProgrammed',
      message: `more specific policies replace its access and limits for some requests: ${names}${overrides}`,
    };
  return {
    reason: overrides === '' ? 'Overridden' : 'PartiallyProgrammed',
    message: `more specific policies replace its access and limits everywhere: ${names}${overrides}`,
  };
}

/** Leaves out the number of policies, which would change with each of them. */
function formatNames(ids: readonly string[]): string {
  const sorted = [...new Set(ids)].toSorted(compareText);
  const named = sorted.slice(0, maxNamed).map((id) => `AccessPolicy ${id}`);
  return [named.join(', '), ...(sorted.length > maxNamed ? ['others'] : [])].join(' and ');
}
