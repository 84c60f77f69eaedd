import { useEffect, useRef, useState } from 'preact/hooks'
import { t } from '../../text/translate.js'
import type { Comparison, WhatIfReply, WhatIfRequest } from './protocol.js'

interface Run {
  readonly progress?: { readonly read: number; readonly lines: number }
  readonly result?: Comparison
  readonly problem?: string
}

/** Compares rules in a worker. A new comparison, or the end of the page, stops the one that runs. */
export function useComparison() {
  const [run, setRun] = useState<Run>({})
  const worker = useRef<Worker>(undefined)
  const end = (outcome: Run): void => {
    worker.current?.terminate()
    worker.current = undefined
    setRun(outcome)
  }
  useEffect(() => () => worker.current?.terminate(), [])
  const start = (request: WhatIfRequest): void => {
    end({ progress: { read: 0, lines: 0 } })
    const started = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' })
    worker.current = started
    started.onmessage = ({ data }: MessageEvent<WhatIfReply>) => {
      if (data.kind === 'progress') setRun({ progress: data })
      else end(data.kind === 'done' ? { result: data.comparison } : { problem: data.message })
    }
    started.onerror = (event) => end({ problem: event.message || t('workerFailed') })
    started.postMessage(request)
  }
  return { ...run, start, stop: () => end({}) }
}
