import { type Html, html } from '@tollgate/kit/html';
import { badge, type Tone } from '../../ui/text.ts';
import type { Schemas } from './page.ts';

/** Whether an object is in force, in words. */
export function stateBadge({
  generation,
  accepted,
  inForce,
  heldBack,
}: Pick<Schemas['ObjectSummary'], 'generation' | 'accepted' | 'inForce' | 'heldBack'>): Html {
  if (heldBack !== undefined) return badge('deletion held back', 'warn');
  if (!accepted && inForce === generation) return badge('partly in force', 'warn');
  if (!accepted)
    return html`${badge('refused', 'bad')} ${inForce === undefined ? 'none in force' : `version ${inForce} in force`}`;
  if (inForce === generation) return badge('in force', 'ok');
  return html`${badge('not yet in force')}${inForce !== undefined && ` version ${inForce} is`}`;
}

type Condition = Schemas['Condition'];

/** Conditions that are good news when they are true. Others say what is wrong. */
const goodTypes: ReadonlySet<string> = new Set(['Accepted', 'Programmed', 'Ready', 'Enforced', 'Matched']);

export function conditionTone({ type, status }: Pick<Condition, 'type' | 'status'>): Tone {
  if (status === 'Unknown' || type === 'Reconciling') return 'neutral';
  if ((status === 'True') === goodTypes.has(type)) return 'ok';
  return type === 'Accepted' ? 'bad' : 'warn';
}

/** The conditions that need a person. */
export function openConditions(conditions: readonly Condition[]): Html | undefined {
  const open = conditions.filter((condition) => ['warn', 'bad'].includes(conditionTone(condition)));
  if (open.length === 0) return undefined;
  return html`${open.map((condition) => html`<div>${badge(conditionName(condition), conditionTone(condition))}</div>`)}`;
}

/** The reasons of some types are the same word. */
function conditionName({ type, reason }: Condition): string {
  return type === reason ? type : `${type}: ${reason}`;
}

type Counts = Schemas['ObjectSummary']['clients'];

/** `2 of 3 limiters, no auth server` */
export function acknowledgedBy({ limiters, authServers }: Counts): string | undefined {
  const texts = [
    limiters && countText(limiters, 'limiter'),
    authServers && countText(authServers, 'auth server'),
  ].filter((text) => text !== undefined);
  return texts.length === 0 ? undefined : texts.join(', ');
}

function countText({ acknowledged, connected }: Schemas['ClientCount'], what: string): string {
  return connected === 0 ? `no ${what}` : `${acknowledged} of ${connected} ${what}s`;
}
