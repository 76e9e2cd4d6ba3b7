import { formatProblem, type RuleProblem } from '@tollgate/rules/problem';

/** What a person reads in the status of a resource; more than this is a broken generator's. */
const maxProblemsTold = 20;
const maxTextLength = 4_096;

/** The problems of a rejected set as one text for the server: one line each, bounded in number and length. */
export function rejectionText(problems: readonly RuleProblem[]): string {
  const told = problems.slice(0, maxProblemsTold).map(formatProblem);
  const more = problems.length - told.length;
  return boundedText([...told, ...(more > 0 ? [`… and ${more} more`] : [])].join('\n'));
}

/** The text, cut where it is longer than a server is told. */
export function boundedText(text: string): string {
  return text.length > maxTextLength ? `${text.slice(0, maxTextLength - 1)}…` : text;
}
