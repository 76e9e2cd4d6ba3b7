import { type Html, html } from '@tollgate/kit/html';
import packageJson from '../../../package.json' with { type: 'json' };
import type { Replica } from '../../live/live.ts';
import { elementId, time } from '../../ui/text.ts';

interface Finding {
  /** Tells it apart from others with the same alert. */
  readonly subject: string;
  readonly text: Html;
  /** Stands at the end of the line, so that nothing moves when its text changes. */
  readonly since?: Html | undefined;
  readonly alert: string;
  readonly isCritical: boolean;
}

const runBook = `https://github.com/tollgate-dev/tollgate/blob/v${packageJson.version}/docs/alerts.md`;

/** Alerts of replicas that do not answer: of one, and of all of a kind. */
const outageAlerts = {
  'auth server': { one: 'TollgateAuthPodDown', all: 'TollgateAuthDown' },
  limiter: { one: 'TollgateRatelimitPodDown', all: 'TollgateRatelimitDown' },
  'xDS server': { one: 'TollgateXdsPodDown', all: 'TollgateXdsDown' },
} as const;

/** Lists in words what is wrong now, with links to the run-book. */
export function viewFindings(replicas: readonly Replica[], nowMs: number): Html {
  const findings = [...findOutages(replicas, nowMs), ...findSignals(replicas)];
  const items =
    findings.length === 0
      ? html`<li class="ok">Nothing needs a person: all replicas answer, and none reports a problem.</li>`
      : findings.map(
          ({ subject, text, since, alert, isCritical }) =>
            html`<li id="${elementId('finding', alert, subject)}"${isCritical && html` class="bad"`}>${text} <a href="${runBook}#${alert.toLowerCase()}">What to do</a>${since && html` <span class="dim">First noticed ${since}</span>`}</li>`,
        );
  return html`<section class="card" aria-live="polite"><h2>What is wrong now</h2><ul class="findings">${items}</ul></section>`;
}

function findOutages(replicas: readonly Replica[], nowMs: number): readonly Finding[] {
  return replicas.flatMap(({ url, kind, failure }) => {
    if (failure === undefined) return [];
    const peers = replicas.filter((other) => other.kind === kind);
    const areAllDown = peers.every((peer) => peer.failure !== undefined);
    const alerts = kind === undefined ? undefined : outageAlerts[kind];
    const who = areAllDown && kind !== undefined ? `No ${kind} answers: ` : '';
    return [
      {
        subject: url,
        text: html`${who}${url} does not answer: ${failure.reason}.`,
        since: time(failure.sinceMs, nowMs),
        alert: (areAllDown ? alerts?.all : alerts?.one) ?? 'alerts',
        isCritical: areAllDown,
      },
    ];
  });
}

/** One finding for a signal, with the replicas that report it. */
function findSignals(replicas: readonly Replica[]): readonly Finding[] {
  const reported = replicas.flatMap(({ url, signals }) => signals.map((signal) => ({ url, signal })));
  return [...Map.groupBy(reported, ({ signal }) => signal.text)].flatMap(([text, reports]) => {
    const [first] = reports;
    if (first === undefined) return [];
    const where = reports.map(({ url }) => new URL(url).host).join(', ');
    const { alert, isCounter } = first.signal;
    return [{ subject: text, text: html`${text} (${where}).`, alert, isCritical: isCounter }];
  });
}
