import { type Html, html } from '@tollgate/kit/html';
import { parse } from '@tollgate/yaml/documents';
import type { LineNote } from '../../ui/code.ts';
import { badge } from '../../ui/text.ts';
import type { Schemas } from './page.ts';
import { conditionTone } from './state.ts';

type Finding = Schemas['Finding'];

/** Notes at lines, and findings that are about no line. */
interface Notes {
  readonly notes: readonly LineNote[];
  readonly others: readonly Finding[];
}

/** A line of a message of a condition that names a field. */
const fieldMessage = /^((?:spec|metadata)(?:[.[][^\s:]*)?): (.+)$/gm;

/** The findings and conditions of a manifest at the fields that they name. */
export function manifestNotes({
  manifest,
  findings,
  conditions,
}: Pick<Schemas['ObjectDetail'], 'manifest' | 'findings' | 'conditions'>): Notes {
  const parsed = parse({ text: manifest, linesBefore: 0 });
  const document = parsed.ok ? parsed.documents[0] : undefined;
  const reason = conditions.find(({ type }) => type === 'Accepted')?.reason ?? 'Invalid';
  const known = new Set(findings.map(({ field }) => field));
  const others = findings.filter(({ field }) => document === undefined || field === undefined);
  const ofFindings = findings.flatMap(({ field, severity, message }): readonly Located[] =>
    field === undefined
      ? []
      : [{ field, message, ...(severity === 'error' ? { tone: 'bad', reason } : warning) }],
  );
  const ofConditions = conditions
    .filter((condition) => conditionTone(condition) !== 'ok')
    .flatMap((condition) =>
      [...condition.message.matchAll(fieldMessage)].map(([, field = '', message = '']): Located => {
        return {
          field,
          message,
          tone: conditionTone(condition),
          reason: `${condition.type}: ${condition.reason}`,
        };
      }),
    )
    .filter(({ field }) => !known.has(field));
  const notes = [...ofFindings, ...ofConditions].flatMap((note) =>
    document === undefined ? [] : [toNote(note, document.positionOf(note.field).line)],
  );
  return { notes, others };
}

/** A remark about a field; its text is empty where that is not known. */
interface Located extends Pick<LineNote, 'tone'> {
  readonly field: string;
  readonly reason: string;
  readonly message: string;
}

export const warning = { tone: 'warn', reason: 'Warning' } as const;

/** The findings of `POST /v1/validate` at the lines that it names. */
export function validationNotes({ problems, objects }: Schemas['Validation']): Notes {
  const findings: readonly Finding[] = [
    ...problems.map((problem) => ({ ...problem, severity: 'error' as const })),
    ...objects.flatMap((object) => object.findings),
  ];
  return {
    notes: findings.flatMap(({ line, field = '', severity, message }) => {
      if (line === undefined) return [];
      const kind = severity === 'error' ? ({ tone: 'bad', reason: 'Error' } as const) : warning;
      return [toNote({ ...kind, field, message }, line)];
    }),
    others: findings.filter(({ line }) => line === undefined),
  };
}

/** Findings that are about no line. */
export function findingTexts(findings: readonly Finding[]): readonly Html[] {
  return findings.map(
    ({ severity, message }) =>
      html`<p>${badge(severity, severity === 'error' ? 'bad' : 'warn')} ${message}</p>`,
  );
}

export function toNote({ field, reason, message, tone }: Located, line: number): LineNote {
  return {
    line,
    tone,
    text: html`${badge(reason, tone)} ${field !== '' && html`<code>${field}</code>: `}${message}`,
  };
}
